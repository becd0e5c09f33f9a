{{- define "vestibule.controller-peers" -}}
{{- if eq .Values.controller.name "traefik" }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: traefik
  podSelector:
    matchLabels:
      app.kubernetes.io/name: traefik
{{- else if eq .Values.controller.name "nginx" }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: nginx-ingress
  podSelector:
    matchLabels:
      app.kubernetes.io/name: nginx-ingress
{{- else if eq .Values.controller.name "istio" }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .Values.gatewayApi.gateway.namespace | quote }}
  podSelector:
    matchLabels:
      gateway.networking.k8s.io/gateway-name: {{ .Values.gatewayApi.gateway.name | quote }}
{{- else if eq .Values.controller.name "ingress-nginx" }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: ingress-nginx
  podSelector:
    matchLabels:
      app.kubernetes.io/name: ingress-nginx
{{- else if eq .Values.controller.name "haproxy" }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: haproxy-controller
  podSelector:
    matchLabels:
      app.kubernetes.io/name: kubernetes-ingress
{{- else if eq .Values.controller.name "envoy-gateway" }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: envoy-gateway-system
  podSelector:
    matchLabels:
      app.kubernetes.io/component: proxy
      app.kubernetes.io/name: envoy
{{- else if eq .Values.controller.name "contour" }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: projectcontour
  podSelector:
    matchLabels:
      app: envoy
{{- else }}
- podSelector:
    matchLabels:
      vestibule.auth/peers: to-be-set
{{- end }}
{{- end }}

{{- define "vestibule.pod-annotations" -}}
{{- if .Values.openshift.enabled }}
openshift.io/required-scc: restricted-v2
{{- end }}
{{- end }}

{{- /* Prefers another node for each pod of a program. On Kubernetes 1.31 and newer a rollout does not count old pods. */}}
{{- define "vestibule.affinity" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - podAffinityTerm:
        labelSelector:
          matchLabels:
            app.kubernetes.io/name: {{ index . 1 }}
        {{- if semverCompare ">=1.31-0" (index . 0).Capabilities.KubeVersion.Version }}
        matchLabelKeys:
          - pod-template-hash
        {{- end }}
        topologyKey: kubernetes.io/hostname
      weight: 100
{{- end }}

{{- define "vestibule.ingress-rules" -}}
- host: {{ include "vestibule.host" . }}
  http:
    paths:
      - backend:
          service:
            name: edge
            port:
              name: http
        path: /
        pathType: Prefix
{{- end }}

{{- define "vestibule.controller-class" -}}
{{- if eq .Values.controller.name "traefik" }}
traefik
{{- else if or (eq .Values.controller.name "ingress-nginx") (eq .Values.controller.name "nginx") }}
nginx
{{- else if eq .Values.controller.name "haproxy" }}
haproxy
{{- else if eq .Values.controller.name "contour" }}
contour
{{- else }}
to-be-set
{{- end }}
{{- end }}

{{- define "vestibule.controller-annotations" -}}
{{- if eq .Values.controller.name "traefik" }}
traefik.ingress.kubernetes.io/router.entrypoints: websecure
traefik.ingress.kubernetes.io/router.tls: "true"
{{- else if eq .Values.controller.name "nginx" }}
nginx.org/client-max-body-size: "0"
nginx.org/proxy-buffer-size: 16k
nginx.org/proxy-buffering: "false"
nginx.org/proxy-buffers: 8 16k
nginx.org/proxy-read-timeout: 120s
nginx.org/websocket-services: edge
{{- else if eq .Values.controller.name "ingress-nginx" }}
nginx.ingress.kubernetes.io/proxy-body-size: "0"
nginx.ingress.kubernetes.io/proxy-buffer-size: 16k
nginx.ingress.kubernetes.io/proxy-read-timeout: "120"
nginx.ingress.kubernetes.io/ssl-redirect: "true"
{{- else if eq .Values.controller.name "haproxy" }}
haproxy.org/request-set-header: X-Forwarded-Host %[req.hdr(host)]
haproxy.org/ssl-redirect: "true"
haproxy.org/ssl-redirect-code: "301"
haproxy.org/timeout-server: 120s
{{- else if eq .Values.controller.name "contour" }}
ingress.kubernetes.io/force-ssl-redirect: "true"
projectcontour.io/response-timeout: infinity
projectcontour.io/websocket-routes: /
{{- end }}
{{- end }}
