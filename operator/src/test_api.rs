//! An API server for tests: records what is asked and answers as told.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// A request that was made.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

impl Recorded {
    /// The body as an answer: an object that a client can read back.
    pub(crate) fn body_as_object(&self) -> Value {
        let mut object = if self.body.is_object() {
            self.body.clone()
        } else {
            json!({})
        };
        let name = self
            .path
            .trim_end_matches("/status")
            .rsplit('/')
            .next()
            .unwrap_or_default();
        object["metadata"]["name"] = json!(name);
        if object.get("spec").is_none() {
            object["spec"] = json!({});
        }
        object
    }
}

pub(crate) type Log = Arc<Mutex<Vec<Recorded>>>;

/// A client whose requests are answered by `answer` and kept in the log.
pub(crate) fn answering(
    answer: impl Fn(&Recorded) -> (u16, Value) + Send + 'static,
) -> (Client, Log) {
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let log = Log::default();
    let kept = Arc::clone(&log);
    tokio::spawn(async move {
        while let Some((request, send)) = handle.next_request().await {
            let recorded = record(request).await;
            let (code, body) = answer(&recorded);
            kept.lock().unwrap().push(recorded);
            let body = Body::from(serde_json::to_vec(&body).unwrap());
            send.send_response(Response::builder().status(code).body(body).unwrap());
        }
    });
    (Client::new(service, "default"), log)
}

async fn record(request: Request<Body>) -> Recorded {
    let (parts, body) = request.into_parts();
    let bytes = body.collect_bytes().await.unwrap();
    let header = parts
        .headers
        .get("content-type")
        .map(|value| value.to_str().unwrap().to_owned());
    Recorded {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        content_type: header.unwrap_or_default(),
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
    }
}

/// The answer for an object that is not there.
pub(crate) fn not_found() -> (u16, Value) {
    (
        404,
        json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"}),
    )
}
