//! A service as an operator sees it: flags, exit codes, messages, draining.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(30);

fn probe() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chassis-probe"));
    command.env_clear();
    command
}

fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = probe()
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A free address: bound and released.
fn free() -> String {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    taken.local_addr().unwrap().to_string()
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: probe\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A running probe, killed when the test ends.
struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    address: String,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        Self::start_in(arguments, &[])
    }

    fn start_in(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut probe = probe();
        probe.args(arguments).envs(environment.iter().copied());
        let mut child = probe.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut running = Self {
            child,
            out,
            address: String::new(),
        };
        running.address = running.line("listening ");
        running
    }

    fn line(&mut self, beginning: &str) -> String {
        let mut line = String::new();
        while self.out.read_line(&mut line).unwrap() > 0 {
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
            line.clear();
        }
        panic!("the probe ended before it printed {beginning:?}");
    }

    fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
    }

    fn exit_code(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            assert!(Instant::now() < deadline, "the probe did not end");
            std::thread::yield_now();
        }
    }

    fn ask(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: probe\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        stream
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn help_names_every_setting_with_its_flag_variable_and_default() {
    let (code, out, _) = run(&["--help"], &[]);
    assert_eq!(code, 0);
    for part in [
        "--listen <ADDRESS>",
        "PROBE_LISTEN",
        "127.0.0.1:0",
        "--secret-file",
        "PROBE_SECRET_FILE",
        "--log-format",
        "LOG_FORMAT",
        "--drain-delay <SECONDS>",
        "--check-config",
    ] {
        assert!(out.contains(part), "{part} is missing in {out}");
    }
    assert!(!out.contains("settings-table"));
}

#[test]
fn version_and_settings_table_print_and_exit() {
    let (code, out, _) = run(&["--version"], &[]);
    assert_eq!(
        (code, out.trim()),
        (0, concat!("chassis-probe ", env!("CARGO_PKG_VERSION")))
    );
    let (code, out, _) = run(&["--settings-table"], &[]);
    assert_eq!(code, 0);
    assert!(
        out.contains("| `PROBE_SLOW_MS` | `--slow-ms MS` | `300` | How slow. |"),
        "{out}"
    );
}

#[test]
fn an_unknown_flag_exits_with_2() {
    assert_eq!(run(&["--bogus"], &[]).0, 2);
}

#[test]
fn a_command_has_its_own_arguments_and_exit_code_and_takes_every_setting() {
    for arguments in [
        &["say", "word", "hello", "--loud", "--url", "http://here/"][..],
        &["--url", "http://here/", "say", "word", "hello", "--loud"],
        &[
            "--url",
            "http://there/",
            "say",
            "word",
            "--url=http://here/",
            "hello",
            "--loud",
        ],
    ] {
        let (code, out, err) = run(arguments, &[("PROBE_URL", "http://elsewhere/")]);
        assert_eq!((code, out.as_str()), (7, "HELLO at http://here/\n"), "{err}");
    }
    let (_, out, _) = run(&["say", "word", "hello"], &[("PROBE_URL", "http://here/")]);
    assert_eq!(out, "hello at http://here/\n");
}

#[test]
fn a_command_judges_the_settings_it_reads_and_no_others() {
    let wrong = [("PROBE_SECRET", "hunter2"), ("PROBE_SLOW_MS", "0")];
    assert_eq!(run(&["say", "word", "hello"], &wrong).0, 7);
    let (code, _, err) = run(&["say", "word", "hello"], &[("PROBE_URL", "nowhere")]);
    assert_eq!(code, 78);
    assert!(err.contains("PROBE_URL (--url)"), "{err}");
}

#[test]
fn an_unknown_or_incomplete_command_exits_with_2_and_says_what_was_meant() {
    let (code, _, err) = run(&["sayy", "word", "hello"], &[]);
    assert_eq!(code, 2);
    assert!(err.contains("'say'"), "{err}");
    assert_eq!(run(&["say"], &[]).0, 2);
    assert_eq!(run(&["say", "word"], &[]).0, 2);
    assert_eq!(run(&["say", "word", "hello", "--bogus"], &[]).0, 2);
}

#[test]
fn the_manual_names_the_commands_and_theirs_names_the_services() {
    let (code, out, _) = run(&["--help"], &[]);
    assert_eq!(code, 0);
    assert!(out.contains("Says something"), "{out}");
    let (code, out, _) = run(&["say", "word", "--help"], &[]);
    assert_eq!(code, 0);
    assert!(
        out.contains("Words are cheap.") && out.contains("`chassis-probe --help`"),
        "{out}"
    );
    assert!(!out.contains("PROBE_SLOW_MS"), "{out}");
    assert_eq!(
        run(&["--check-config", "say", "word", "hello"], &[]).1,
        "configuration ok\n"
    );
}

#[test]
fn every_wrong_setting_is_named_at_once_and_no_secret_is_shown() {
    let (code, out, err) = run(
        &["--slow-ms=0"],
        &[
            ("PROBE_LISTEN", "nowhere"),
            ("PROBE_SECRET", "hunter2"),
            ("PROBE_URL", "user:letmein@nothing"),
            ("LOG_FORMAT", "xml"),
        ],
    );
    assert_eq!((code, out.as_str()), (78, ""));
    for name in [
        "PROBE_LISTEN (--listen)",
        "PROBE_SECRET (--secret)",
        "PROBE_URL (--url)",
        "PROBE_SLOW_MS (--slow-ms)",
        "LOG_FORMAT (--log-format)",
    ] {
        assert!(err.contains(name), "{name} is missing in {err}");
    }
    assert!(!err.contains("hunter2") && !err.contains("letmein"), "{err}");
}

#[test]
fn check_config_validates_warns_of_mistyped_variables_and_exits() {
    let (code, out, err) = run(&["--check-config", "--switch"], &[("PROBE_LISTN", "x")]);
    assert_eq!((code, out.as_str()), (0, "configuration ok\n"));
    assert!(
        err.contains("PROBE_LISTN") && err.contains("did you mean PROBE_LISTEN?"),
        "{err}"
    );
    assert_eq!(run(&["--check-config"], &[("PROBE_URL", "x")]).0, 78);
}

#[test]
fn variables_of_traces_that_cannot_be_honoured_are_refused_by_name() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    for (name, value) in [
        ("OTEL_TRACES_EXPORTER", "console"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_TRACES_EXPORTER", "otlp,console"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_PROPAGATORS", "b3"),
        ("OTEL_PROPAGATORS", "tracecontext,jaeger"),
        ("OTEL_PROPAGATORS", "baggage"),
        ("OTEL_PROPAGATORS", "none"),
        ("OTEL_SDK_DISABLED", "perhaps"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
    ] {
        let (code, _, err) = run(&["--check-config"], &[endpoint, (name, value)]);
        assert_eq!(code, 78, "{name}={value}: {err}");
        assert!(err.contains(&format!("{name}: ")), "{err}");
    }
    let (_, _, err) = run(
        &["--check-config"],
        &[endpoint, ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")],
    );
    assert!(err.contains("OTEL_EXPORTER_OTLP_PROTOCOL: "), "{err}");
    let protocol = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
    for sound in [
        // A platform sets these for every program; without traces they have no effect.
        &[protocol, ("OTEL_PROPAGATORS", "b3")][..],
        &[endpoint, protocol, ("OTEL_SDK_DISABLED", "true")],
        &[endpoint, protocol, ("OTEL_TRACES_EXPORTER", "none")],
        &[endpoint, protocol, ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")],
        &[endpoint, ("OTEL_PROPAGATORS", "tracecontext")],
        &[endpoint, ("OTEL_PROPAGATORS", "baggage, tracecontext")],
        &[endpoint, ("OTEL_TRACES_EXPORTER", "otlp")],
    ] {
        assert_eq!(run(&["--check-config"], sound).0, 0, "{sound:?}");
    }
}

#[test]
fn traces_go_where_the_standard_variables_say_and_nowhere_if_they_switch_them_off() {
    for (variables, is_sent) in [
        (&[][..], true),
        (&[("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")], true),
        (&[("OTEL_TRACES_EXPORTER", "none")], false),
        (&[("OTEL_SDK_DISABLED", "true")], false),
        (&[("OTEL_SDK_DISABLED", "TRUE")], false),
    ] {
        let collector = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", collector.local_addr().unwrap());
        let of_all = format!("http://{}", free());
        let endpoints = [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", address.as_str()),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", of_all.as_str()),
            // This test's collector accepts connections and never answers.
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "200"),
        ];
        let mut running = Running::start_in(&[], &[&endpoints, variables].concat());
        assert!(get(&running.address, "/traced").starts_with("HTTP/1.1 200"));
        running.terminate();
        assert_eq!(running.exit_code(), 0);
        collector.set_nonblocking(true).unwrap();
        assert_eq!(collector.accept().is_ok(), is_sent, "{variables:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_service_takes_no_huge_pages() {
    let running = Running::start(&[]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    assert!(status.contains("THP_enabled:\t0\n"), "{status}");
}

#[test]
fn a_taken_port_is_named_with_its_setting() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, err) = run(&["--listen", &address], &[]);
    assert_eq!(code, 1);
    assert!(err.contains(&address) && err.contains("PROBE_LISTEN"), "{err}");
}

#[test]
fn a_request_in_flight_is_answered_after_sigterm_while_new_connections_are_refused() {
    let mut running = Running::start(&["--slow-ms=1000"]);
    let mut slow = running.ask("/slow");
    running.line("slow began");
    running.terminate();
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(&running.address).is_ok() {
        assert!(Instant::now() < deadline, "the port stays open");
    }
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("slow"),
        "{answer}"
    );
    assert_eq!(running.exit_code(), 0);
}

#[test]
fn readiness_goes_first_and_traffic_is_served_for_the_drain_delay() {
    let admin = free();
    let mut running = Running::start(&["--admin-listen", &admin, "--drain-delay=60"]);
    assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 200"));
    assert!(get(&admin, "/metrics").contains("vestibule_build_info{program=\"chassis-probe\""));
    running.terminate();
    let deadline = Instant::now() + PATIENCE;
    while !get(&admin, "/readyz").starts_with("HTTP/1.1 503") {
        assert!(Instant::now() < deadline, "readiness stays on");
    }
    assert!(get(&admin, "/livez").starts_with("HTTP/1.1 200"));
    assert!(get(&running.address, "/").ends_with("quick"));
    // A second signal ends the delay.
    running.terminate();
    assert_eq!(running.exit_code(), 0);
}

#[test]
fn requests_are_answered_while_nobody_reads_the_log_and_what_was_dropped_is_told() {
    const REQUESTS: u64 = 200;
    let admin = free();
    let mut running = Running::start(&["--admin-listen", &admin]);
    for _ in 0..REQUESTS {
        assert!(get(&running.address, "/logged").starts_with("HTTP/1.1 200"));
    }
    let metrics = get(&admin, "/metrics");
    let dropped = metrics
        .lines()
        .find_map(|line| line.strip_prefix("log_records_dropped_total "));
    let dropped: u64 = dropped.unwrap().parse().unwrap();
    assert!(dropped > 0, "200 records of 64 KiB were kept");

    let (mut written, mut told) = (0, None);
    while told.is_none() {
        let mut line = String::new();
        assert_ne!(
            running.out.read_line(&mut line).unwrap(),
            0,
            "dropped records are told"
        );
        written += u64::from(line.contains("xxxx"));
        if line.contains("log records were dropped") {
            told = line.split_once("\"dropped\":").map(|(_, rest)| rest.to_owned());
        }
    }
    assert!(told.unwrap().starts_with(&dropped.to_string()));
    assert_eq!(written + dropped, REQUESTS);
    running.terminate();
    assert_eq!(running.exit_code(), 0);
}

#[test]
fn the_last_records_are_written_before_the_program_ends() {
    let mut running = Running::start(&[]);
    running.terminate();
    let mut rest = String::new();
    running.out.read_to_string(&mut rest).unwrap();
    assert!(
        rest.trim_end().ends_with('}') && rest.contains("\"stopped\""),
        "{rest}"
    );
}
