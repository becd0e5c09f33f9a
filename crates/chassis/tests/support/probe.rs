//! The smallest service: answers `/` at once, `/slow` once released, `/logged` with a long log record,
//! `/traced` in a span, and prints its address.

use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use chassis::process_topic;
use chassis::runtime::Runtime;
use chassis::serve::{self, BindError};
use chassis::settings::{Reader, Service, Setting, SettingNotice, SettingsError, Topic, Zero};
use chassis::tool::{Tool, Work};
use clap::{Arg, ArgAction, ArgMatches, Command};

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
    prefixes: &["PROBE_"],
    shared_prefix: None,
    about: "A probe.",
    first_settings: &[],
    fixed: &[],
    topics: &[&TOPIC, &PROCESS],
};

/// The size of the `/logged` record: as much as a pipe holds.
const RECORD_BYTES: usize = 64 * 1024;

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
        .route("/slow", get(slow))
        .route(
            "/traced",
            get(|| async { drop(tracing::info_span!(target: chassis::traces::TARGET, "traced").entered()) }),
        )
        .route(
            "/logged",
            get(|| async { tracing::info!("{}", "x".repeat(RECORD_BYTES)) }),
        );
    serve::serve_each(
        runtime.workers,
        listener,
        move || router.clone(),
        None,
        serve::Limits::default(),
        serve::Stopping::on(runtime.shutdown),
    )
    .await;
    Ok(())
}

/// `chassis-probe say word --loud`: answers with the word and its place.
struct Say;

impl Tool for Say {
    fn command(&self) -> Command {
        let word = Command::new("word")
            .about("Says a word")
            .arg(Arg::new("word").required(true))
            .arg(Arg::new("loud").long("loud").action(ArgAction::SetTrue))
            .after_help("Words are cheap.");
        Command::new("say")
            .about("Says something")
            .subcommand_required(true)
            .subcommand(word)
    }

    fn prepare(
        &self,
        given: &ArgMatches,
        mut reader: Reader<'_>,
    ) -> Result<(Work, Vec<SettingNotice>), SettingsError> {
        let given = given.subcommand().map_or(given, |(_, given)| given);
        let word = given.get_one::<String>("word").cloned().unwrap_or_default();
        let loud = given.get_flag("loud");
        let place = reader.url("PROBE_URL").map(String::from);
        let ((), warnings) = reader.finish(())?;
        let work = async move {
            let word = if loud { word.to_uppercase() } else { word };
            println!("{word} at {}", place.unwrap_or_default());
            ExitCode::from(7)
        };
        Ok((Box::pin(work), warnings))
    }
}

fn main() -> ExitCode {
    chassis::service::main(&SERVICE, &[&Say], read, run)
}
