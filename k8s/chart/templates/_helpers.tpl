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
