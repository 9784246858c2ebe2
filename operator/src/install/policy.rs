//! The admission policy that keeps an agent to its own node: whoever takes one node's token may write that node's
//! `GpuRdmaNode`, and no other. Pure builders. Follows the node claim of bound service-account tokens (Kubernetes 1.32:
//! `ServiceAccountTokenPodNodeInfo`).

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec, Validation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;

use crate::components::{MANAGED_BY_LABEL, MANAGER};

/// Name of policy and binding.
pub const NAME: &str = "gpu-rdma-agent-own-node";

const CLAIM: &str = "authentication.kubernetes.io/node-name";

/// The policy. It fails closed.
#[must_use]
pub fn policy(namespace: &str) -> ValidatingAdmissionPolicy {
    let agent =
        format!("request.userInfo.username == 'system:serviceaccount:{namespace}:gpu-rdma-agent'");
    let spec = ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        match_constraints: Some(MatchResources {
            resource_rules: Some(vec![rule()]),
            ..MatchResources::default()
        }),
        match_conditions: Some(vec![MatchCondition {
            name: "by-the-agent".to_owned(),
            expression: agent,
        }]),
        validations: Some(vec![validation()]),
        ..ValidatingAdmissionPolicySpec::default()
    };
    ValidatingAdmissionPolicy {
        metadata: metadata(),
        spec: Some(spec),
        status: None,
    }
}

/// Puts the policy into force.
#[must_use]
pub fn binding() -> ValidatingAdmissionPolicyBinding {
    let spec = ValidatingAdmissionPolicyBindingSpec {
        policy_name: Some(NAME.to_owned()),
        validation_actions: Some(vec!["Deny".to_owned()]),
        ..ValidatingAdmissionPolicyBindingSpec::default()
    };
    ValidatingAdmissionPolicyBinding {
        metadata: metadata(),
        spec: Some(spec),
    }
}

fn metadata() -> ObjectMeta {
    ObjectMeta {
        name: Some(NAME.to_owned()),
        labels: Some(BTreeMap::from([(
            MANAGED_BY_LABEL.to_owned(),
            MANAGER.to_owned(),
        )])),
        ..ObjectMeta::default()
    }
}

fn rule() -> NamedRuleWithOperations {
    let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    NamedRuleWithOperations {
        api_groups: list(&[crds::names::GROUP]),
        api_versions: list(&["*"]),
        operations: list(&["CREATE", "UPDATE", "DELETE", "CONNECT"]),
        resources: list(&["gpurdmanodes", "gpurdmanodes/status"]),
        ..NamedRuleWithOperations::default()
    }
}

/// `request.name`, because a deletion has no object.
fn validation() -> Validation {
    let claim = format!("request.userInfo.extra['{CLAIM}']");
    let present = format!(
        "has(request.userInfo.extra) && '{CLAIM}' in request.userInfo.extra && {claim}.size() == 1"
    );
    let who = format!("({present}) ? {claim}[0] : 'no node'");
    Validation {
        expression: format!("{present} && {claim}[0] == request.name"),
        message_expression: Some(format!(
            "'the agent on ' + ({who}) + ' may not write the GpuRdmaNode of ' + request.name"
        )),
        reason: Some("Forbidden".to_owned()),
        ..Validation::default()
    }
}
