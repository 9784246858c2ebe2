{{/* Hook annotations; takes (list events weight). Nothing of a hook stays after it succeeded, least of all its rights. */}}
{{- define "gpu-rdma.hookAnnotations" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
helm.sh/hook-weight: {{ index . 1 | quote }}
{{- end -}}

{{/* The Job that runs one subcommand of the operator; takes (list $ subcommand events). */}}
{{- define "gpu-rdma.hookJob" -}}
{{- $root := index . 0 -}}
{{- $subcommand := index . 1 -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: gpu-rdma-{{ $subcommand }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "gpu-rdma.labels" (list $root "hook") | nindent 4 }}
  annotations:
    {{- include "gpu-rdma.hookAnnotations" (list (index . 2) 0) | nindent 4 }}
spec:
  # Below helm's default timeout, so that the Job's own reason is what the admin sees.
  activeDeadlineSeconds: 240
  backoffLimit: 3
  template:
    metadata:
      labels:
        {{- include "gpu-rdma.labels" (list $root "hook") | nindent 8 }}
    spec:
      serviceAccountName: gpu-rdma-hook
      {{- include "gpu-rdma.podSettings" $root | trim | nindent 6 }}
      # A failed try keeps its pod, and so its log.
      restartPolicy: Never
      containers:
        - name: {{ $subcommand }}
          {{- include "gpu-rdma.containerSettings" $root | nindent 10 }}
          args: [{{ $subcommand }}]
          env:
            {{- include "gpu-rdma.env" $root | nindent 12 }}
{{- end -}}

{{/* Binds gpu-rdma-hook to a role; takes (list $ kind name events), kind being ClusterRole or Role. */}}
{{- define "gpu-rdma.hookBinding" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ index . 2 }}
  {{- if eq $kind "Role" }}
  namespace: {{ $root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "gpu-rdma.labels" (list $root "hook") | nindent 4 }}
  annotations:
    {{- include "gpu-rdma.hookAnnotations" (list (index . 3) -5) | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ index . 2 }}
subjects:
  - kind: ServiceAccount
    name: gpu-rdma-hook
    namespace: {{ $root.Release.Namespace }}
{{- end -}}
