//! The files in `../tests/packed` were made by the tools themselves of a module without code, `tiny.ko`:
//! `zstd --ultra -22`, `xz --check=crc32 --lzma2=dict=1MiB`, `gzip -9n`; those named `wide` ask for more memory than there is:
//! `zstd --ultra -22 --long=31 < tiny.ko`, `xz --check=crc32 --lzma2=dict=1536MiB`.

use super::*;

const ZST: &[u8] = include_bytes!("../tests/packed/tiny.ko.zst");
const XZ: &[u8] = include_bytes!("../tests/packed/tiny.ko.xz");
const GZ: &[u8] = include_bytes!("../tests/packed/tiny.ko.gz");
const WIDE_ZST: &[u8] = include_bytes!("../tests/packed/wide.ko.zst");
const WIDE_XZ: &[u8] = include_bytes!("../tests/packed/wide.ko.xz");

#[test]
fn what_each_tool_packed_is_the_same_module() {
    let module = unpack(GZ, "gz", LIMIT).unwrap();
    assert!(module.starts_with(b"\x7fELF"));
    assert_eq!(unpack(XZ, "xz", LIMIT).as_ref(), Ok(&module));
    assert_eq!(unpack(ZST, "zst", LIMIT).as_ref(), Ok(&module));
    let exact = u64::try_from(module.len()).unwrap();
    for (packed, ending) in [(GZ, "gz"), (XZ, "xz"), (ZST, "zst")] {
        assert_eq!(unpack(packed, ending, exact).as_ref(), Ok(&module));
        let error = unpack(packed, ending, exact - 1).unwrap_err();
        assert!(error.contains("unpacks to more than"), "{ending}: {error}");
    }
}

#[test]
fn a_header_that_asks_for_gigabytes_gets_an_error() {
    for (packed, ending) in [(WIDE_XZ, "xz"), (WIDE_ZST, "zst")] {
        let outcome = unpack(packed, ending, LIMIT);
        assert!(outcome.is_err(), "{ending}: {outcome:?}");
    }
}

#[test]
fn what_is_cut_off_damaged_or_of_another_kind_is_an_error() {
    for (packed, ending) in [(GZ, "gz"), (XZ, "xz"), (ZST, "zst")] {
        for length in [0, 3, packed.len() / 2] {
            let outcome = unpack(&packed[..length], ending, LIMIT);
            assert!(outcome.is_err(), "{length} bytes of {ending}: {outcome:?}");
        }
        assert!(unpack(&b"packed"[..], ending, LIMIT).is_err());
    }
    assert!(unpack(GZ, "lzo", LIMIT).is_err());
}
