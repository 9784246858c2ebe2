use super::*;

#[test]
fn the_built_in_table_is_whole() {
    let matrix = load(None).unwrap();
    assert!(matrix.trains.len() >= 10 && matrix.cuda.len() >= 10);
    assert_eq!(*built_in(), matrix);
}

fn refused(change: impl Fn(String) -> String) -> String {
    let text = change(BUILT_IN.to_owned());
    assert_ne!(text, BUILT_IN, "the test changes nothing");
    let error = parse("sites.yaml", &text).unwrap_err();
    crate::gather::chain(&error)
}

#[test]
fn a_wrong_table_is_refused_with_row_field_and_remedy() {
    let schema = refused(|text| text.replace("schema: 1", "schema: 2"));
    assert_eq!(
        schema,
        "the compatibility table sites.yaml has schema 2; this version reads schema 1"
    );
    let twice = refused(|text| text.replace("id: doca-2.7", "id: doca-2.5"));
    assert!(
        twice.ends_with("row doca-2.5: id `doca-2.5`: write a name that no other row has"),
        "{twice}"
    );
    let device = refused(|text| text.replace("\"1021\"", "\"MT2910\""));
    assert!(
        device.contains("row nic-connectx-7: devices `MT2910`"),
        "{device}"
    );
    let version = refused(|text| text.replace("driver: \"535\"", "driver: latest"));
    assert!(
        version.contains("row cuda-12.2: driver `latest`"),
        "{version}"
    );
    let field = refused(|text| text.replace("ofed: \"24.07\"", "ofedd: \"24.07\""));
    assert!(field.contains("ofedd") && field.contains("line"), "{field}");
}

#[test]
fn a_file_stands_in_for_it_and_a_missing_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("compat.yaml");
    std::fs::write(&path, BUILT_IN.replace("id: gpus-gb10", "id: site-gb10")).unwrap();
    let matrix = load(Some(&path)).unwrap();
    assert_eq!(matrix.gpu("NVIDIA GB10").unwrap().id, "site-gb10");
    let missing = load(Some(&directory.path().join("x"))).unwrap_err();
    assert!(missing.to_string().contains("leave --compat out"));
}

#[test]
fn products_are_found_by_whole_words() {
    let matrix = built_in();
    let row = |product: &str| matrix.gpu(product).map(|row| row.id.as_str());
    assert_eq!(row("NVIDIA H100 80GB HBM3"), Some("gpus-hopper"));
    assert_eq!(row("NVIDIA A100-SXM4-80GB"), Some("gpus-ampere"));
    assert_eq!(row("NVIDIA GeForce RTX 5090"), Some("gpus-geforce"));
    assert_eq!(row("Tesla V100-SXM2-32GB"), Some("gpus-before-turing"));
    assert_eq!(row("NVIDIA RTX PRO 6000 Blackwell"), Some("gpus-blackwell"));
    assert_eq!(row("NVIDIA X1"), None);
    assert_eq!(matrix.cuda_of("535.129.03"), Some("12.2"));
    assert_eq!(
        matrix.cuda_of("536.1"),
        Some("12.2"),
        "the next older branch"
    );
}
