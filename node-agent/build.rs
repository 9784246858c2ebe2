//! Compiles the kubelet's podresources API with protox, so that no `protoc` is needed. Packs the program's relocations: they
//! are read whole at its start, and unpacked a twentieth of its pages (`DT_RELR`, glibc from 2.36).

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/podresources.proto");
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    let files = protox::compile(["proto/podresources.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
