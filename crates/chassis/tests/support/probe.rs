//! The smallest service: answers `/` at once, `/slow` after its answer was let go, and prints its address.

use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use chassis::process_topic;
use chassis::runtime::Runtime;
use chassis::serve::{self, BindError};
use chassis::settings::{Reader, Service, Setting, Topic, Zero};

static PROCESS: Topic = process_topic!("PROBE_", "off");

static TOPIC: Topic = Topic {
    title: "Probe",
    settings: &[
        Setting {
            name: "PROBE_LISTEN",
            default: "127.0.0.1:0",
            value: "ADDRESS",
            secret: false,
            help: "Where.",
        },
        Setting {
            name: "PROBE_SECRET",
            default: "",
            value: "LIST",
            secret: true,
            help: "Signs.",
        },
        Setting {
            name: "PROBE_URL",
            default: "",
            value: "URL",
            secret: false,
            help: "A place.",
        },
        Setting {
            name: "PROBE_SLOW_MS",
            default: "300",
            value: "MS",
            secret: false,
            help: "How slow.",
        },
        Setting {
            name: "PROBE_SWITCH",
            default: "false",
            value: "BOOL",
            secret: false,
            help: "On or off.",
        },
    ],
};

static SERVICE: Service = Service {
    name: "chassis-probe",
    prefix: "PROBE_",
    about: "A probe.",
    topics: &[&TOPIC, &PROCESS],
};

struct Settings {
    listen: Option<std::net::SocketAddr>,
    slow: Duration,
}

fn read(reader: &mut Reader<'_>) -> Settings {
    let listen = reader.socket_addr("PROBE_LISTEN");
    reader.url("PROBE_URL");
    reader.flag("PROBE_SWITCH");
    for secret in reader.secrets("PROBE_SECRET") {
        if secret.expose().len() < 8 {
            reader.wrong("PROBE_SECRET", format!("is too short: {}", secret.expose()));
        }
    }
    Settings {
        listen,
        slow: Duration::from_millis(reader.millis("PROBE_SLOW_MS", Zero::Refused)),
    }
}

async fn run(settings: Settings, runtime: Runtime) -> Result<(), BindError> {
    let Some(listen) = settings.listen else {
        return Ok(());
    };
    let listener = serve::bind(listen, "PROBE_LISTEN").await?;
    if let Ok(address) = listener.local_addr() {
        println!("listening {address}");
    }
    let slow = move || async move {
        println!("slow began");
        tokio::time::sleep(settings.slow).await;
        "slow"
    };
    let router = Router::new()
        .route("/", get(|| async { "quick" }))
        .route("/slow", get(slow));
    serve::serve(listener, router, None, runtime.shutdown).await;
    Ok(())
}

fn main() -> ExitCode {
    chassis::service::main(&SERVICE, read, run)
}
