//! Point 5: which `:authority` a kubelet may send. The client is written in Go, as the kubelet is.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::fake::Kubelet;
use crate::node::Node;
use crate::sample::{self, RESOURCE};

/// Builds the client with the flags of the cluster's programs, so that Go compiles what they have in common once.
async fn build() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubelet/authority");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("authority");
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-trimpath"])
        .args(["-gcflags=all=-dwarf=false -l", "-ldflags=-s -w", "-o"])
        .arg(&program)
        .current_dir(source)
        .env("CGO_ENABLED", "0");
    let output = go.output().await.expect("run go: install Go 1.26 or newer");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "go build: {said}");
    program
}

async fn call(client: &Path, socket: &Path, authority: &str) -> String {
    let mut command = Command::new(client);
    let output = command.arg(socket).arg(authority).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What kubelets send since kubernetes/kubernetes#112597 is answered. The socket's path, which is what they sent before, is
/// no authority: the HTTP/2 library resets such a call (hyperium/h2#487), and only that call.
#[tokio::test]
async fn kubelet_05_answers_localhost_and_resets_the_path_of_the_socket() {
    let client = build().await;
    let node = Node::with(&sample::node_file(2));
    let kubelet = Kubelet::start(&node.kubelet_dir());
    let plugin = node.start();
    kubelet.until_devices(RESOURCE, 2).await;
    let socket = node.kubelet_dir().join(&node.sockets()[0]);
    // Field 2 of the options: GetPreferredAllocation is to be had.
    assert_eq!(call(&client, &socket, "localhost").await, "OK: fields 2\n");
    for old in ["path", "default"] {
        let answer = call(&client, &socket, old).await;
        assert!(answer.contains("PROTOCOL_ERROR"), "{old}: {answer}");
    }
    assert_eq!(call(&client, &socket, "localhost").await, "OK: fields 2\n");
    kubelet.until_devices(RESOURCE, 2).await;
    assert_eq!(kubelet.log().registrations.len(), 1);
    plugin.stop().await;
}
