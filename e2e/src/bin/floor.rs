//! What the bench holds the product against, built as the product is: a device plugin that does nothing, and bare reads.
//!
//! * `floor serve DIR`: opens a socket in the kubelet's directory, registers, answers every call with an empty message, and
//!   registers again when `kubelet.sock` is made anew.
//! * `floor read LIST`: reads every file of a list and lists every folder, whose lines end with a slash.
//! * `floor peak PROGRAM ARGUMENT…`: runs a program and prints the most KiB that it had in memory.

use std::path::Path;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use device_plugin::kubelet::{self, RegisterError};
use device_plugin::proto::device_plugin_server::{DevicePlugin, DevicePluginServer};
use device_plugin::proto::{self, KUBELET_SOCKET};
use futures::{Stream, StreamExt, stream};
use inotify::{Inotify, WatchMask};
use nix::sys::resource::{UsageWho, getrusage};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// How long a registration may take.
const LIMIT: Duration = Duration::from_secs(10);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", dir] => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(serve(Path::new(dir)))
        }
        ["read", list] => read(Path::new(list)),
        ["peak", program, ref rest @ ..] => peak(Command::new(program).args(rest)),
        _ => bail!("usage: floor serve DIR | read LIST | peak PROGRAM ARGUMENT…"),
    }
}

async fn serve(dir: &Path) -> Result<()> {
    let inotify = Inotify::init().context("watch the kubelet's directory")?;
    inotify.watches().add(dir, WatchMask::CREATE)?;
    let mut events = inotify.into_event_stream([0; 4096])?;
    for count in 0_u64.. {
        let endpoint = format!("floor-{count}.sock");
        let listener = UnixListener::bind(dir.join(&endpoint)).context("open a socket")?;
        let (service, incoming) = (
            DevicePluginServer::new(Empty),
            UnixListenerStream::new(listener),
        );
        let server = Server::builder().serve_with_incoming(service, incoming);
        let server = tokio::spawn(server);
        register(&dir.join(KUBELET_SOCKET), &endpoint).await?;
        let made = |name: Option<&std::ffi::OsStr>| name.is_some_and(|name| name == KUBELET_SOCKET);
        while let Some(event) = events.next().await {
            if made(event?.name.as_deref()) {
                break;
            }
        }
        server.abort();
    }
    Ok(())
}

/// A socket has its name a moment before anybody listens on it.
async fn register(socket: &Path, endpoint: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        match kubelet::register(socket, endpoint, "bench/floor", LIMIT).await {
            Err(RegisterError::Unreachable { .. }) if begun.elapsed() < LIMIT => {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
            result => return result.context("register"),
        }
    }
}

fn read(list: &Path) -> Result<()> {
    let text = std::fs::read_to_string(list).context("read the list")?;
    let mut bytes = 0;
    for path in text.lines() {
        bytes += if path.ends_with('/') {
            std::fs::read_dir(path)?.count()
        } else {
            std::fs::read(path)?.len()
        };
    }
    println!("{bytes}");
    Ok(())
}

fn peak(command: &mut Command) -> Result<()> {
    let status = command
        .stdout(Stdio::null())
        .status()
        .context("run the program")?;
    if !status.success() {
        bail!("the program failed: {status}");
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    println!("{}", usage.max_rss());
    Ok(())
}

struct Empty;

#[tonic::async_trait]
impl DevicePlugin for Empty {
    type ListAndWatchStream =
        Pin<Box<dyn Stream<Item = Result<proto::ListAndWatchResponse, Status>> + Send>>;

    async fn get_device_plugin_options(
        &self,
        _: Request<proto::Empty>,
    ) -> Result<Response<proto::DevicePluginOptions>, Status> {
        Ok(Response::new(proto::OPTIONS))
    }

    async fn list_and_watch(
        &self,
        _: Request<proto::Empty>,
    ) -> Result<Response<Self::ListAndWatchStream>, Status> {
        let first = stream::once(async { Ok(proto::ListAndWatchResponse::default()) });
        Ok(Response::new(Box::pin(first.chain(stream::pending()))))
    }

    async fn get_preferred_allocation(
        &self,
        _: Request<proto::PreferredAllocationRequest>,
    ) -> Result<Response<proto::PreferredAllocationResponse>, Status> {
        Ok(Response::new(proto::PreferredAllocationResponse::default()))
    }

    async fn allocate(
        &self,
        _: Request<proto::AllocateRequest>,
    ) -> Result<Response<proto::AllocateResponse>, Status> {
        Ok(Response::new(proto::AllocateResponse::default()))
    }

    async fn pre_start_container(
        &self,
        _: Request<proto::PreStartContainerRequest>,
    ) -> Result<Response<proto::PreStartContainerResponse>, Status> {
        Ok(Response::new(proto::PreStartContainerResponse {}))
    }
}
