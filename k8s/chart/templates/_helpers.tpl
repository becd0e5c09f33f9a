{{- /* The chart's name and version, in the form of the label helm.sh/chart. */}}
{{- define "vestibule.chart" -}}
{{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The image that `images.NAME` describes: its digest, else its tag, else the product's version. */}}
{{- define "vestibule.image" -}}
{{- $root := index . 0 }}
{{- $image := index $root.Values.images (index . 1) }}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}{{ else }}{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The host of baseUrl. */}}
{{- define "vestibule.host" -}}
{{ (urlParse .Values.baseUrl).hostname }}
{{- end }}

{{- /* A ConfigMap's name with a hash of its data: a change starts a rollout and never reaches running pods. */}}
{{- define "vestibule.config-name" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- printf "%s-%s" $name (include (printf "vestibule.data.%s" $name) $root | sha256sum | trunc 10) }}
{{- end }}

{{- /* All hosts of the edge, without ports. */}}
{{- define "vestibule.hosts" -}}
{{- $hosts := list (include "vestibule.host" . | trim) }}
{{- range .Values.hosts }}
{{- $hosts = append $hosts (regexReplaceAll ":[0-9]+$" . "") }}
{{- end }}
{{- toYaml $hosts }}
{{- end }}

{{- /* Egress rules for an external store, one for each address. */}}
{{- define "vestibule.store-egress" -}}
{{- range .Values.store.addresses }}
{{- $ports := list }}
{{- range .ports }}
{{- $ports = append $ports (dict "protocol" "TCP" "port" .) }}
{{- end }}
{{ toYaml (list (dict "to" .peers "ports" $ports)) }}
{{- end }}
{{- end }}

{{- /* The replicas of a Deployment. With autoscaling, it keeps the live number: without the field, Kubernetes runs
one pod, and any other number conflicts with the autoscaler. */}}
{{- define "vestibule.replicas" -}}
{{- $root := index . 0 }}
{{- if $root.Values.autoscaling.enabled }}
{{- dig "spec" "replicas" (index . 3) (lookup "apps/v1" "Deployment" $root.Release.Namespace (index . 1)) | int }}
{{- else }}
{{- index . 2 }}
{{- end }}
{{- end }}

{{- /* Keeps old ConfigMaps that running pods or the last release still use. `index . 1` has those of this release.
A pod that restarts during a rollout needs them, and so does a rollback. The next upgrade removes them. */}}
{{- define "vestibule.configmaps-in-use" -}}
{{- $root := index . 0 }}
{{- $space := $root.Release.Namespace }}
{{- $rendered := join "\n" (index . 1) }}
{{- $users := toJson (list (lookup "v1" "Pod" $space "") (lookup "apps/v1" "Deployment" $space "") (lookup "apps/v1" "StatefulSet" $space "") (lookup "batch/v1" "CronJob" $space "")) }}
{{- range (lookup "v1" "ConfigMap" $space "").items }}
{{- $name := .metadata.name }}
{{- $own := and .immutable (eq (dig "labels" "app.kubernetes.io/instance" "" .metadata) $root.Release.Name) (eq (dig "labels" "app.kubernetes.io/part-of" "" .metadata) "vestibule") }}
{{- if and $own (contains (quote $name) $users) (not (contains (printf "name: %s\n" $name) $rendered)) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  namespace: {{ $space }}
  labels:
    {{- toYaml .metadata.labels | nindent 4 }}
immutable: true
data:
  {{- toYaml .data | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The chart's settings, overridden by those in the values. */}}
{{- define "vestibule.settings" -}}
{{- $all := fromYaml (index . 0) }}
{{- range $name, $value := index . 1 }}
{{- $_ := set $all $name $value }}
{{- end }}
{{- toYaml $all }}
{{- end }}

{{- /* The callers of the session service: the product's own ones from the file, and those of other namespaces. */}}
{{- define "vestibule.callers" -}}
{{- $root := index . 0 }}
{{- $root.Files.Get (index . 1) }}
{{- if $root.Values.sessionCallers.enabled }}
{{- range $root.Values.sessionCallers.callers }}

[[caller]]
identity = {{ .identity | quote }}
rpcs = {{ .rpcs | toJson }}
{{- end }}
{{- end }}
{{- end }}
