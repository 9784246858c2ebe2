//! Compiles the kubelet's API with protox, so that no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto/deviceplugin.proto");
    let files = protox::compile(["proto/deviceplugin.proto"], ["proto"])?;
    // Ordered maps: the same answer has the same bytes.
    tonic_prost_build::configure()
        .btree_map(".")
        .compile_fds(files)?;
    Ok(())
}
