use super::*;

fn asked(text: &str) -> anyhow::Result<Desired> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), text)?;
    desired(file.path())
}

#[test]
fn a_field_that_is_not_there_is_named_wherever_it_stands() {
    for (text, field) in [
        ("driver: {type: HostPackages}\n", "driver.type"),
        ("mode: Enforce\n", "mode"),
        (
            "kind: GpuRdmaNode\napiVersion: gpurdma.dev/v1alpha1\nmetadata: {name: a}\nspec: {cluster: all, mode: Enforce, config: {fabrik: {}}}\n",
            "spec.config.fabrik",
        ),
    ] {
        let error = format!("{:#}", asked(text).unwrap_err());
        assert!(
            error.contains(&format!("no such field: {field};")),
            "{error}"
        );
    }
}

#[test]
fn a_configuration_with_known_fields_is_taken() {
    let desired = asked("driver: {modules: [ib_umad]}\n").unwrap();
    assert_eq!(desired.modules.len(), 1);
}
