"""Test data for each alert: series that raise it, series that do not, and the minute of the check.

Series use promtool's notation: `0+60x30` starts at 0 and grows by 60 at each step. A step is one minute, or ten
minutes if the check is on a later day.
"""

EDGE = 'job="vestibule-edge", namespace="vestibule", pod="edge-1"'
SERVICE = 'job="vestibule-session-svc", namespace="vestibule", pod="session-svc-1"'


def requests(status, values):
    return f'http_server_request_duration_seconds_count{{{EDGE}, http_response_status_code="{status}"}}', values


def quickness(le, values):
    return f'http_server_request_duration_seconds_bucket{{{EDGE}, le="{le}"}}', values


def calls(status, values):
    return f'rpc_server_call_duration_seconds_count{{{SERVICE}, rpc_response_status_code="{status}"}}', values


def logins(result, values):
    return f'logins_total{{{EDGE}, provider="default", result="{result}"}}', values


def refusals(step, reason, values):
    return f'sign_in_refusals_total{{{EDGE}, step="{step}", reason="{reason}"}}', values


def refreshes(outcome, values):
    return f'session_refreshes_total{{{SERVICE}, outcome="{outcome}"}}', values


def gauge(name, labels, values):
    return f"{name}{{{labels}}}", values


def upstreams(outcome, values):
    return f'upstream_request_duration_seconds_count{{{EDGE}, http_route="/shop/*", outcome="{outcome}"}}', values


def operations(le, values):
    return f'session_store_operation_duration_seconds_bucket{{{SERVICE}, operation="load", outcome="ok", le="{le}"}}', values


def endings(status, values):
    return f'rpc_server_call_duration_seconds_count{{{SERVICE}, rpc_method="session.v1.SessionService/EndSessions", rpc_response_status_code="{status}"}}', values


def certificate(use, begins, ends):
    """Returns the series of a certificate that is valid between two seconds of the test's time."""
    return [gauge(f"tls_certificate_{word}_timestamp_seconds", f'{EDGE}, use="{use}"', f"{secs}x120") for word, secs in (("not_before", begins), ("not_after", ends))]


def limit(name, values):
    return f'limit_hits_total{{{EDGE}, limit="{name}"}}', values


def burns(good, bad, all_well):
    """Returns the cases of an objective's fast and slow alerts.

    Fast: a tenth fails for two hours. Slow: for days, slightly more than the budget fails, in steps of ten minutes.
    """
    fast = [good("0+90x180"), bad("0+10x180")]
    few = [good("0+1x180"), bad("0+0x60 1x120")]
    slow = [good("0+9930x440"), bad("0+70x440")]
    usual = [good("0+99990x440"), bad("0+10x440"), *all_well]
    return (fast, few, 150), (slow, usual, 4300)


MANY, FEW, NONE = "0+600x120", "0+1x120", "0+0x120"

CASES = {
    "VestibuleEdgeDown": ([gauge("up", EDGE, "0x120")], [gauge("up", EDGE, "1x120")], 5),
    "VestibuleSessionServiceDown": ([gauge("up", EDGE, "1x120")], [gauge("up", SERVICE, "1x120")], 5),
    "VestibulePodUnreadable": ([gauge("up", EDGE, "0x120")], [gauge("up", EDGE, "1x120"), gauge("up", 'job="other"', "0x120")], 10),
    "VestibuleErrors": ([requests(200, MANY), requests(503, "0+60x120")], [requests(200, MANY), requests(503, FEW), requests(404, MANY)], 15),
    "VestibuleSlow": ([quickness("1.0", "0+600x120"), quickness("2.5", "0+620x120"), quickness("+Inf", "0+620x120")], [quickness("1.0", MANY), quickness("2.5", "0+601x120"), quickness("+Inf", "0+601x120")], 20),
    "VestibuleSessionCallsFail": ([calls("OK", MANY), calls("UNAVAILABLE", "0+60x120")], [calls("OK", MANY), calls("UNAVAILABLE", FEW), calls("NOT_FOUND", MANY)], 15),
    "VestibuleStoreFull": ([gauge("session_store_full", SERVICE, "1x120")], [gauge("session_store_full", SERVICE, "0x120")], 5),
    "VestibuleReplicaUnheard": (
        [gauge("session_cache_lookups_total", f'{EDGE}, result="unheard"', MANY)],
        [gauge("session_cache_lookups_total", f'{EDGE}, result="unheard"', "0+0x4 50x120"), gauge("session_cache_lookups_total", f'{EDGE}, result="hit"', MANY)],
        30,
    ),
    "VestibuleSignInUnavailable": ([logins("success", MANY), logins("unavailable", "0+60x120")], [logins("success", MANY), logins("unavailable", FEW), logins("rejected", MANY)], 15),
    "VestibuleSignInMisconfigured": ([refusals("callback", "client_refused", "0+6x120")], [refusals("callback", "denied", MANY), refusals("logout_token", "token_signature", MANY)], 30),
    "VestibuleLogoutTokensRefused": ([refusals("logout_token", "token_audience", "0+6x120")], [refusals("callback", "token_audience", MANY)], 40),
    "VestibuleRefreshRejected": ([refreshes("rejected", "0+6x120")], [refreshes("refreshed", MANY), refreshes("refused", MANY), refreshes("rejected", NONE)], 15),
    "VestibuleProviderUnreachable": ([refreshes("refreshed", MANY), refreshes("transient", "0+120x120")], [refreshes("refreshed", MANY), refreshes("transient", FEW)], 15),
    "VestibuleRefreshUnsaved": ([gauge("session_refresh_unsaved", SERVICE, "1x120")], [gauge("session_refresh_unsaved", SERVICE, "0x8 1 0x120")], 10),
    "VestibuleRefreshSuperseded": ([refreshes("refreshed", MANY), refreshes("superseded", "0+60x120")], [refreshes("refreshed", MANY), refreshes("superseded", FEW)], 60),
    "VestibuleRevocationsFail": (
        [gauge("session_revocations_total", f'{SERVICE}, outcome="failed"', "0+6x120")],
        [gauge("session_revocations_total", f'{SERVICE}, outcome="failed"', "0 3x120"), gauge("session_revocations_total", f'{SERVICE}, outcome="done"', MANY)],
        60,
    ),
    "VestibuleLogRecordsDropped": ([gauge("log_records_dropped_total", EDGE, "0 0 7x120")], [gauge("log_records_dropped_total", EDGE, "7x120")], 10),
    "VestibuleAuditLogStands": ([gauge("audit_records_lost_total", EDGE, "0 0 7x120")], [gauge("audit_records_lost_total", EDGE, "7x120"), gauge("audit_write_failures_total", EDGE, "0 3x120")], 10),
    "VestibuleVersionsMixed": (
        [gauge("vestibule_build_info", f'{EDGE}, program="auth-edge", version="0.1.0"', "1x120"), gauge("vestibule_build_info", f'{EDGE}, program="auth-edge", version="0.2.0"', "1x120")],
        [gauge("vestibule_build_info", f'{EDGE}, program="auth-edge", version="0.1.0"', "1x120"), gauge("vestibule_build_info", f'{SERVICE}, program="session-svc", version="0.2.0"', "1x120")],
        90,
    ),
    "VestibuleCertificateExpires": (
        certificate("server", -70000, 18000),
        [
            *certificate("server", 0, 86400),
            *certificate("session_service", 0, 3600),
            gauge("certmanager_certificate_expiration_timestamp_seconds", 'name="redis-tls"', "36000x120"),
            gauge("certmanager_certificate_expiration_timestamp_seconds", 'name="shop"', "60x120"),
        ],
        30,
    ),
    "VestibuleUpstreamUnreachable": ([upstreams("2xx", MANY), upstreams("unreachable", "0+60x120")], [upstreams("2xx", MANY), upstreams("timeout", FEW), upstreams("5xx", MANY)], 15),
    "VestibuleStoreSlow": ([operations("0.25", "0+600x120"), operations("0.5", "0+620x120"), operations("+Inf", "0+620x120")], [operations("0.25", MANY), operations("0.5", "0+601x120"), operations("+Inf", "0+601x120")], 20),
    "VestibuleLimitsHit": ([limit("requests", "0+60x120")], [limit("requests", FEW), limit("logins", MANY)], 30),
    "VestibuleOpenFilesRunOut": (
        [gauge("process_open_fds", EDGE, "900x120"), gauge("process_max_fds", EDGE, "1000x120")],
        [gauge("process_open_fds", EDGE, "700x120"), gauge("process_max_fds", EDGE, "1000x120")],
        15,
    ),
}

for objective, good, bad, all_well in (
    ("SignIn", lambda values: logins("success", values), lambda values: logins("unavailable", values), [logins("rejected", "0+90x440")]),
    ("Requests", lambda values: requests(200, values), lambda values: requests(503, values), [requests(502, "0+900x440"), upstreams("5xx", "0+600x440"), upstreams("unreachable", "0+300x440")]),
    ("Refresh", lambda values: refreshes("refreshed", values), lambda values: refreshes("transient", values), [refreshes("refused", "0+900x440")]),
    ("Ending", lambda values: endings("OK", values), lambda values: endings("UNAVAILABLE", values), [endings("NOT_FOUND", "0+900x440")]),
):
    CASES[f"Vestibule{objective}BurnsFast"], CASES[f"Vestibule{objective}BurnsSlow"] = burns(good, bad, all_well)
