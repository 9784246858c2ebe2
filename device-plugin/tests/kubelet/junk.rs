//! gRPC calls whose messages are any bytes.

use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// A message of any bytes.
#[derive(Clone, Debug, Default)]
pub struct Junk(pub Vec<u8>);

#[derive(Default)]
struct Plain;

impl Codec for Plain {
    type Encode = Junk;
    type Decode = Junk;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Plain {
    type Item = Junk;
    type Error = Status;

    fn encode(&mut self, item: Junk, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        prost::bytes::BufMut::put_slice(buffer, &item.0);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

impl Decoder for Plain {
    type Item = Junk;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Junk>, Status> {
        let mut bytes = vec![0; prost::bytes::Buf::remaining(buffer)];
        prost::bytes::Buf::copy_to_slice(buffer, &mut bytes);
        Ok(Some(Junk(bytes)))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

/// Calls a method with these bytes.
pub async fn call(channel: Channel, method: &'static str, bytes: Vec<u8>) -> Result<Junk, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static(method);
    let answer = client.unary(Request::new(Junk(bytes)), path, Plain).await;
    answer.map(tonic::Response::into_inner)
}
