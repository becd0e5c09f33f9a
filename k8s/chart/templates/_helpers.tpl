{{- /* The chart's name and version, as Helm's own label has it. */}}
{{- define "vestibule.chart" -}}
{{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* An image by its name in the values: with a digest if there is one, else with its tag, else with the product's version. */}}
{{- define "vestibule.image" -}}
{{- $root := index . 0 }}
{{- $image := index $root.Values.images (index . 1) }}
{{- if $image.digest }}{{ $image.repository }}@{{ $image.digest }}{{ else }}{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* The host that people go to. */}}
{{- define "vestibule.host" -}}
{{ (urlParse .Values.baseUrl).hostname }}
{{- end }}

{{- /* The name of a ConfigMap: a changed one gets another name, so that it comes to pods by a rollout and never under them. */}}
{{- define "vestibule.config-name" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- printf "%s-%s" $name (include (printf "vestibule.data.%s" $name) $root | sha256sum | trunc 10) }}
{{- end }}

{{- /* All hosts that people go to, without ports. */}}
{{- define "vestibule.hosts" -}}
{{- $hosts := list (include "vestibule.host" . | trim) }}
{{- range .Values.hosts }}
{{- $hosts = append $hosts (regexReplaceAll ":[0-9]+$" . "") }}
{{- end }}
{{- toYaml $hosts }}
{{- end }}

{{- /* Where a store of the platform's is, one rule for each address. */}}
{{- define "vestibule.store-egress" -}}
{{- range .Values.store.addresses }}
{{- $ports := list }}
{{- range .ports }}
{{- $ports = append $ports (dict "protocol" "TCP" "port" .) }}
{{- end }}
{{ toYaml (list (dict "to" .peers "ports" $ports)) }}
{{- end }}
{{- end }}

{{- /* The replicas of a Deployment. With autoscaling the live number: without the field Kubernetes runs one pod, and another number is a conflict
with the autoscaler. */}}
{{- define "vestibule.replicas" -}}
{{- $root := index . 0 }}
{{- if $root.Values.autoscaling.enabled }}
{{- dig "spec" "replicas" (index . 3) (lookup "apps/v1" "Deployment" $root.Release.Namespace (index . 1)) | int }}
{{- else }}
{{- index . 2 }}
{{- end }}
{{- end }}

{{- /* ConfigMaps that running pods or the workloads of the release before still name, next to those of this release (`index . 1`). A pod that
restarts during a rollout finds its settings, and a rollback finds every ConfigMap in both releases. The next upgrade removes them. */}}
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

{{- /* Settings of the chart with those of an installation. */}}
{{- define "vestibule.settings" -}}
{{- $all := fromYaml (index . 0) }}
{{- range $name, $value := index . 1 }}
{{- $_ := set $all $name $value }}
{{- end }}
{{- toYaml $all }}
{{- end }}

{{- /* Who may call the session service: the file of the product's own callers, and those of other namespaces. */}}
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
