"""For each alert: series with which it is raised, series with which it is not, and the minute at which both are looked at.

Series are in promtool's notation: `0+60x30` starts at 0 and grows by 60 at each step of a minute.
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
        [gauge("certmanager_certificate_expiration_timestamp_seconds", 'name="redis-tls"', "18000x120")],
        [gauge("certmanager_certificate_expiration_timestamp_seconds", 'name="redis-tls"', "36000x120"), gauge("certmanager_certificate_expiration_timestamp_seconds", 'name="shop"', "60x120")],
        30,
    ),
}
