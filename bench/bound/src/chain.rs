//! axum, one tonic call, one Redis GET, all on shared connections: the least a request costs without a cache.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::routing::{get, post};
use redis::{AsyncCommands, Client, aio::MultiplexedConnection};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::codegen::{BoxFuture, Service, http::uri::PathAndQuery};
use tonic::transport::{Channel, Endpoint, Server};
use tonic_prost::ProstCodec;

/// Bytes out, bytes back: the message is as long as a session and costs no decoding.
type Codec = ProstCodec<Vec<u8>, Vec<u8>>;

const METHOD: &str = "/bound.Session/Get";
/// The key whose value is answered with; the benchmark sets it.
const KEY: &[u8] = b"bound";

/// Calls the session half for each request and answers with its response as JSON.
pub(crate) async fn edge(session: String) -> io::Result<Router> {
    let endpoint = Endpoint::from_shared(session).map_err(io::Error::other)?;
    let channel = endpoint.tcp_nodelay(true).connect_lazy();
    let answer = move || {
        let channel = channel.clone();
        async move {
            let body = get_session(channel)
                .await
                .map_err(|status| (StatusCode::BAD_GATEWAY, status.to_string()))?;
            Ok::<_, (StatusCode, String)>(([(header::CONTENT_TYPE, "application/json")], body))
        }
    };
    Ok(Router::new().fallback(get(answer)))
}

async fn get_session(channel: Channel) -> Result<Vec<u8>, tonic::Status> {
    let mut client = tonic::client::Grpc::new(channel);
    let ready = client.ready().await;
    ready.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
    let request = tonic::Request::new(KEY.to_vec());
    let answer = client.unary(request, PathAndQuery::from_static(METHOD), Codec::default());
    Ok(answer.await?.into_inner())
}

/// Answers each call with what Redis holds. Connections are handed to the workers in turn.
pub(crate) fn session(address: SocketAddr, redis: &str) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let lanes: Vec<_> = (0..cores)
        .map(|_| {
            let (lane, connections) = unbounded_channel();
            let redis = redis.to_owned();
            std::thread::spawn(move || super::runtime()?.block_on(serve(connections, &redis)));
            lane
        })
        .collect();
    for lane in lanes.iter().cycle() {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        lane.send(stream).map_err(io::Error::other)?;
    }
    Ok(())
}

async fn serve(connections: UnboundedReceiver<std::net::TcpStream>, redis: &str) -> io::Result<()> {
    let client = Client::open(redis).map_err(io::Error::other)?;
    let connection = client.get_multiplexed_async_connection().await;
    let lookup = Lookup(connection.map_err(io::Error::other)?);
    let call = move |request: Request| {
        let lookup = lookup.clone();
        async move {
            tonic::server::Grpc::new(Codec::default())
                .unary(lookup, request)
                .await
        }
    };
    let router = Router::new().route(METHOD, post(call));
    let incoming = UnboundedReceiverStream::new(connections).map(TcpStream::from_std);
    let server = Server::builder().add_routes(router.into());
    server
        .serve_with_incoming(incoming)
        .await
        .map_err(io::Error::other)
}

#[derive(Clone)]
struct Lookup(MultiplexedConnection);

impl Service<tonic::Request<Vec<u8>>> for Lookup {
    type Response = tonic::Response<Vec<u8>>;
    type Error = tonic::Status;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: tonic::Request<Vec<u8>>) -> Self::Future {
        let mut redis = self.0.clone();
        Box::pin(async move {
            let value = redis.get(request.into_inner()).await;
            value
                .map(tonic::Response::new)
                .map_err(|error| tonic::Status::unavailable(error.to_string()))
        })
    }
}
