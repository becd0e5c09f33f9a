"""Checks a pod against the restricted profile of the Pod Security Standards, as Kubernetes 1.34 and newer do.

https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
}
SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
PROFILES = {"RuntimeDefault", "Localhost"}


def containers(spec):
    return [*spec.get("initContainers", []), *spec["containers"], *spec.get("ephemeralContainers", [])]


def of_either(context, strict):
    """Yields violations in the security context of a pod or of a container."""
    if context.get("runAsUser") == 0:
        yield "runs as root"
    options = context.get("seLinuxOptions", {})
    if options.get("type", "") not in SELINUX_TYPES or options.get("user") or options.get("role"):
        yield "SELinux options"
    if context.get("appArmorProfile", {}).get("type", "RuntimeDefault") not in PROFILES:
        yield "AppArmor profile"
    if context.get("windowsOptions", {}).get("hostProcess"):
        yield "a Windows host process"
    if "seccompProfile" in context and context["seccompProfile"].get("type") not in PROFILES:
        yield "seccomp profile"
    if strict and context.get("runAsNonRoot") is False:
        yield "may run as root"


def of_container(container, pod):
    context = container.get("securityContext", {})
    yield from of_either(context, strict=True)
    if context.get("privileged"):
        yield "privileged"
    if context.get("allowPrivilegeEscalation") is not False:
        yield "may gain privileges"
    capabilities = context.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []):
        yield "keeps capabilities"
    if set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield "adds capabilities"
    if context.get("procMount", "Default") != "Default":
        yield "unmasks /proc"
    if not context.get("runAsNonRoot", pod.get("runAsNonRoot")):
        yield "may run as root"
    if "seccompProfile" not in context and "seccompProfile" not in pod:
        yield "no seccomp profile"
    if any(port.get("hostPort") for port in container.get("ports", [])):
        yield "a port of the node"
    hooks = container.get("lifecycle", {})
    actions = [container.get(probe, {}) for probe in ("startupProbe", "livenessProbe", "readinessProbe")] + [hooks.get(hook, {}) for hook in ("postStart", "preStop")]
    if any(action.get(kind, {}).get("host") for action in actions for kind in ("httpGet", "tcpSocket")):
        yield "a probe or hook names a host"


def broken(spec):
    """Yields every violation of the profile in a pod."""
    pod = spec.get("securityContext", {})
    yield from of_either(pod, strict=False)
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field):
            yield field
    for sysctl in pod.get("sysctls", []):
        if sysctl["name"] not in SYSCTLS:
            yield f"sysctl {sysctl['name']}"
    for volume in spec.get("volumes", []):
        if not set(volume) - {"name"} <= VOLUMES:
            yield f"volume {volume['name']}"
    for container in containers(spec):
        for what in of_container(container, pod):
            yield f"{container['name']}: {what}"
