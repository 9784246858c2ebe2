use super::PciAddress;

#[test]
fn addresses_read_back_as_written() {
    for text in [
        "0000:0c:00.0",
        "10000:e1:1f.7",
        "ffffffff:ff:01.0",
        "000a:00:00.0",
    ] {
        assert_eq!(text.parse::<PciAddress>().unwrap().to_string(), text);
    }
}

#[test]
fn what_is_no_address_is_refused_with_the_remedy() {
    for text in [
        "",
        "0c:00.0",
        "0000:0c:20.0",
        "0000:0c:00.8",
        "0000:0c:00",
        "000:0c:00.0",
        "0000:0c:+1.0",
        "pci0000:00",
    ] {
        let error = text.parse::<PciAddress>().unwrap_err().to_string();
        assert!(error.contains("0000:0c:00.0"), "{error}");
    }
}
