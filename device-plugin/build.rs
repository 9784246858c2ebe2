//! Compiles the kubelet's API with protox, so that no `protoc` is needed. Packs the program's relocations: they are read
//! whole at its start, and unpacked a twentieth of its pages (`DT_RELR`, glibc from 2.36).

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/deviceplugin.proto");
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    let files = protox::compile(["proto/deviceplugin.proto"], ["proto"])?;
    // Ordered maps: the same answer has the same bytes.
    tonic_prost_build::configure()
        .btree_map(".")
        .compile_fds(files)?;
    Ok(())
}
