{{/* Labels of every object; takes (list $ component). */}}
{{- define "gpu-rdma.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/name: gpu-rdma
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* What Deployment, Service, budget and monitor select by. */}}
{{- define "gpu-rdma.operatorSelector" -}}
app.kubernetes.io/component: operator
app.kubernetes.io/name: gpu-rdma
{{- end -}}

{{/* Full image reference of a component; takes (list $ component's image values). */}}
{{- define "gpu-rdma.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $global := $root.Values.image -}}
{{- $name := printf "%s/%s" (default $global.registry $image.registry) $image.repository -}}
{{- if $image.digest -}}
{{ $name }}@{{ $image.digest }}
{{- else -}}
{{ $name }}:{{ coalesce $image.tag $global.tag $root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Pull policy of a component; takes (list $ component's image values). */}}
{{- define "gpu-rdma.pullPolicy" -}}
{{- $root := index . 0 -}}
{{- default $root.Values.image.pullPolicy (index . 1).pullPolicy -}}
{{- end -}}

{{/* Requests and limits as operator.yaml wants them: every quantity a string. */}}
{{- define "gpu-rdma.resources" -}}
{{- $strings := dict -}}
{{- range $kind, $quantities := . -}}
{{- $list := dict -}}
{{- range $name, $quantity := $quantities -}}
{{- $_ := set $list $name (toString $quantity) -}}
{{- end -}}
{{- $_ := set $strings $kind $list -}}
{{- end -}}
{{ toJson $strings }}
{{- end -}}

{{/* Pod settings that the operator and its hooks share. */}}
{{- define "gpu-rdma.podSettings" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.operator.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.operator.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsGroup: 65532
  runAsNonRoot: true
  runAsUser: 65532
  seccompProfile:
    type: RuntimeDefault
tolerations:
  # A node that the operator itself keeps free must not keep the operator from starting.
  - key: gpurdma.dev/maintenance
    operator: Exists
  {{- with .Values.operator.tolerations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Container settings that the operator and its hooks share. */}}
{{- define "gpu-rdma.containerSettings" -}}
image: {{ include "gpu-rdma.image" (list . .Values.operator.image) | quote }}
imagePullPolicy: {{ include "gpu-rdma.pullPolicy" (list . .Values.operator.image) }}
{{- with .Values.operator.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  readOnlyRootFilesystem: true
{{- end -}}

{{/* Environment that the operator and its hooks share. */}}
{{- define "gpu-rdma.env" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: RUST_LOG
  value: {{ .Values.operator.logLevel | quote }}
{{- end -}}
