//! A program, from command line to exit code.

use std::future::Future;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::audit::{AuditRecord, Event, Outcome};
use crate::audit_log::{AuditFile, Destination};
use crate::clock::SystemClock;
use crate::findings::chain;
use crate::logs::{self, LogQueue, LogSettings, UnwrittenRecords};
use crate::readiness::Readiness;
use crate::runtime::{self, Runtime, TokioRuntimes, Workers};
use crate::serve::{Limits, ListenerRole, Stopping};
use crate::settings::{
    Action, Reader, Service, SettingNotice, SettingsError, Source, Zero, markdown, parse_command_line,
};
use crate::tool::{self, Tool};
use crate::traces::{CollectorSettings, Traces};
use crate::{admin, memory, metrics, panics, serve};

/// Wrong settings (`EX_CONFIG` of sysexits.h).
const EXIT_CONFIG: u8 = 78;

/// The service failed.
const EXIT_FAILURE: u8 = 1;

/// Time for a service after its listeners have drained, within the 30 s that Kubernetes grants by default.
const DRAIN_MARGIN: Duration = Duration::from_secs(2);

/// Bound on the wait for the last log records: a reader of the log that has stopped will not continue.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The settings of every program.
struct Process {
    logs: LogSettings,
    audit: Destination,
    traces: Option<CollectorSettings>,
    /// The address of the admin listener, and the setting that names it.
    admin: Option<(SocketAddr, &'static str)>,
    drain_delay: Duration,
}

/// Runs a program: settings, logs, traces, admin listener, then `run` until it returns or a signal drains it.
///
/// Exit codes: 0 after `--help`, `--version`, a valid `--check-config` or a drain; 1 if running failed; 2 for
/// an unknown flag or command; 78 for wrong settings. Commands in `tools` also have their own.
pub fn main<S, E, F>(
    service: &'static Service,
    tools: &[&dyn Tool],
    read: impl FnOnce(&mut Reader<'_>) -> S,
    run: impl FnOnce(S, Runtime) -> F,
) -> ExitCode
where
    E: std::error::Error + 'static,
    F: Future<Output = Result<(), E>>,
{
    main_with(service, |_| {}, tools, read, run)
}

/// Runs a program that derives settings from others: `derive` adds values to those given.
pub fn main_with<S, E, F>(
    service: &'static Service,
    derive: impl FnOnce(&mut Source),
    tools: &[&dyn Tool],
    read: impl FnOnce(&mut Reader<'_>) -> S,
    run: impl FnOnce(S, Runtime) -> F,
) -> ExitCode
where
    E: std::error::Error + 'static,
    F: Future<Output = Result<(), E>>,
{
    panics::abort_on_panic();
    memory::refuse_huge_pages();
    let commands = tools.iter().map(|tool| tool.command());
    let command_line = match parse_command_line(service, commands, std::env::args_os()) {
        Ok(command_line) => command_line,
        Err(printed) => {
            let _ = printed.print();
            if printed.use_stderr() && tool::seem_to_want_json(std::env::args_os(), tools) {
                let message = printed.render().to_string();
                print!("{}", tool::failure_document("usage", message.trim_end()));
            }
            return ExitCode::from(u8::try_from(printed.exit_code()).unwrap_or(2));
        }
    };
    if command_line.action == Action::SettingsTable {
        print!("{}", markdown(service));
        return ExitCode::SUCCESS;
    }
    let mut source = Source::gather(service, &command_line, std::env::vars_os());
    if let (Action::Command, Some((name, matches))) = (command_line.action, &command_line.command)
        && let Some(tool) = tools.iter().find(|tool| tool.command().get_name() == name)
    {
        if tool.reads_settings() {
            derive(&mut source);
        }
        return use_tool(service, *tool, matches, Reader::new(&source));
    }
    derive(&mut source);
    let mut reader = Reader::new(&source);
    let process = read_process(service, &mut reader);
    let settings = read(&mut reader);
    let (settings, warnings) = match reader.finish(settings) {
        Ok(read) => read,
        Err(wrong) => return report_wrong(service, &wrong),
    };
    if command_line.action == Action::CheckConfig {
        print_warnings(&warnings);
        println!("configuration ok");
        return ExitCode::SUCCESS;
    }
    // Keep no second copy of a secret in memory.
    drop(source);
    serve_until_stopped(service, process, settings, warnings, run)
}

/// Runs a service with its settings, and records its start and end.
fn serve_until_stopped<S, E, F>(
    service: &'static Service,
    process: Process,
    settings: S,
    warnings: Vec<SettingNotice>,
    run: impl FnOnce(S, Runtime) -> F,
) -> ExitCode
where
    E: std::error::Error + 'static,
    F: Future<Output = Result<(), E>>,
{
    let prepared = || -> Result<_, Box<dyn std::error::Error>> {
        let runtimes = TokioRuntimes::start()?;
        let runtime = Runtime {
            clock: Arc::new(SystemClock),
            shutdown: CancellationToken::new(),
            readiness: Readiness::new(),
            metrics: metrics::registry(service.name)?,
            workers: runtimes.workers.clone(),
        };
        let queues = start_queues(&process.audit, &runtime)?;
        Ok((runtimes, runtime, queues))
    };
    let (runtimes, runtime, (records, audit)) = match prepared() {
        Ok(prepared) => prepared,
        Err(error) => return failed(service, error.as_ref()),
    };
    let exit = runtimes.main.block_on(async {
        let traces = process
            .traces
            .as_ref()
            .and_then(|collector| Traces::start(service.name, collector));
        logs::init(
            service.name,
            &process.logs,
            records.clone(),
            audit.clone(),
            process.audit == Destination::Off,
            traces.as_ref(),
        );
        AuditRecord {
            version: Some(env!("CARGO_PKG_VERSION")),
            ..AuditRecord::new(Event::ProcessStart, Outcome::Success)
        }
        .write();
        for warning in warnings {
            tracing::warn!(setting = warning.name, "{}", warning.text);
        }
        let outcome = Box::pin(supervise(service, process, runtime, settings, run)).await;
        if let Some(traces) = traces {
            let _ = tokio::task::spawn_blocking(move || traces.shutdown()).await;
        }
        outcome
    });
    runtimes.stop();
    AuditRecord::new(Event::ProcessStop, Outcome::Success).write();
    if audit.is_some_and(|audit| !audit.flush(FLUSH_TIMEOUT)) {
        eprintln!("the last audit records could not be written: they are lost");
    }
    records.flush(FLUSH_TIMEOUT);
    exit
}

/// Starts the queue of log records, and the queue of the audit file, if there is one.
fn start_queues(
    audit: &Destination,
    runtime: &Runtime,
) -> Result<(LogQueue, Option<LogQueue>), Box<dyn std::error::Error>> {
    let unwritten = UnwrittenRecords::new(&runtime.metrics)?;
    let audit = match audit {
        Destination::File(path) => {
            let file = AuditFile::open(path, &runtime.metrics, &runtime.readiness)?;
            Some(LogQueue::start("audit", file, unwritten.clone())?)
        }
        Destination::Off | Destination::Stdout => None,
    };
    Ok((LogQueue::start("logs", std::io::stdout(), unwritten)?, audit))
}

/// Runs a command. It writes no log records, only its own output.
fn use_tool(service: &Service, tool: &dyn Tool, arguments: &ArgMatches, reader: Reader<'_>) -> ExitCode {
    let (work, warnings) = match tool.prepare(arguments, reader) {
        Ok(prepared) => prepared,
        Err(wrong) => {
            if tool::wants_json(arguments) {
                let message = wrong.to_string();
                print!("{}", tool::failure_document("settings", message.trim_end()));
            }
            return report_wrong(service, &wrong);
        }
    };
    print_warnings(&warnings);
    match runtime::alone() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => {
            if tool::wants_json(arguments) {
                print!("{}", tool::failure_document("runtime", &error.to_string()));
            }
            failed(service, &error)
        }
    }
}

fn print_warnings(warnings: &[SettingNotice]) {
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
}

fn report_wrong(service: &Service, wrong: &SettingsError) -> ExitCode {
    print_warnings(&wrong.warnings);
    eprint!("{}: {wrong}", service.name);
    ExitCode::from(EXIT_CONFIG)
}

async fn supervise<S, E, F>(
    service: &'static Service,
    process: Process,
    runtime: Runtime,
    settings: S,
    run: impl FnOnce(S, Runtime) -> F,
) -> ExitCode
where
    E: std::error::Error + 'static,
    F: Future<Output = Result<(), E>>,
{
    // The admin listener answers until the end, so that draining can be observed.
    let admin_ends = CancellationToken::new();
    if let Some((address, setting)) = process.admin {
        let listener = match serve::bind(address, setting).await {
            Ok(listener) => listener,
            Err(error) => return failed(service, &error),
        };
        let router = admin::router(runtime.readiness.clone(), runtime.metrics.clone());
        let memory = memory::available().map(|memory| memory.bytes);
        tokio::spawn(serve::serve_each(
            Workers::here(),
            listener,
            move || router.clone(),
            None,
            Limits::of_secondary_listener(ListenerRole::Admin, memory),
            Stopping::on(admin_ends.clone()),
        ));
    }
    if let Err(error) = drain_on_signal(&runtime, process.drain_delay) {
        return failed(service, &error);
    }
    let overdue = overdue(runtime.shutdown.clone());
    let outcome = tokio::select! {
        outcome = run(settings, runtime) => outcome,
        () = overdue => Ok(()),
    };
    admin_ends.cancel();
    match outcome {
        Ok(()) => {
            tracing::info!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => failed(service, &error),
    }
}

fn read_process(service: &'static Service, reader: &mut Reader<'_>) -> Process {
    let admin = service
        .settings()
        .find(|setting| setting.name.ends_with("ADMIN_LISTEN"));
    Process {
        logs: LogSettings::read(reader),
        audit: Destination::read(reader),
        traces: CollectorSettings::read(reader),
        admin: admin.and_then(|admin| Some((reader.socket_addr(admin.name)?, admin.name))),
        drain_delay: Duration::from_secs(reader.secs("DRAIN_DELAY", Zero::Allowed)),
    }
}

/// On SIGTERM or SIGINT: turns readiness off, waits, then stops new work. Process 1 would ignore both without this.
fn drain_on_signal(runtime: &Runtime, delay: Duration) -> std::io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    // Programs that rotate files send SIGHUP. Its default action would end the process.
    let _ = signal(SignalKind::hangup())?;
    let (readiness, shutdown) = (runtime.readiness.clone(), runtime.shutdown.clone());
    tokio::spawn(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        tracing::info!("stopping: work in flight finishes");
        readiness.drain();
        // A second signal ends the wait early.
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        shutdown.cancel();
    });
    Ok(())
}

/// Resolves when the time for draining is over. A service that has not returned is abandoned.
async fn overdue(shutdown: CancellationToken) {
    shutdown.cancelled().await;
    tokio::time::sleep(serve::DRAIN_TIMEOUT + DRAIN_MARGIN).await;
    tracing::warn!("the service did not stop in time and is cut off");
}

/// Prints the error and its causes to standard error, regardless of the log settings.
fn failed(service: &Service, error: &(dyn std::error::Error + 'static)) -> ExitCode {
    eprintln!("{}: {}", service.name, chain(error));
    ExitCode::from(EXIT_FAILURE)
}
