//! Label selectors as node affinity: one term per cluster, any of which takes a node. Pure.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::validate::{Cluster, OS_LABEL};

/// The Linux nodes that any of the clusters selects, and those that are kept.
pub(super) fn any_of(clusters: &[&Cluster], kept: &[NodeSelectorTerm]) -> Affinity {
    let mut terms: Vec<NodeSelectorTerm> = Vec::new();
    let selected = clusters.iter().map(|cluster| term(&cluster.label_selector));
    for term in selected.chain(kept.iter().cloned()) {
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    let required = NodeSelector {
        node_selector_terms: terms,
    };
    let node = NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(required),
        ..NodeAffinity::default()
    };
    Affinity {
        node_affinity: Some(node),
        ..Affinity::default()
    }
}

/// The nodes that a DaemonSet takes now.
pub(crate) fn terms(set: &DaemonSet) -> &[NodeSelectorTerm] {
    let pod = set
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    pod.and_then(|pod| pod.affinity.as_ref()?.node_affinity.as_ref())
        .and_then(|nodes| {
            nodes
                .required_during_scheduling_ignored_during_execution
                .as_ref()
        })
        .map(|required| required.node_selector_terms.as_slice())
        .unwrap_or_default()
}

pub(crate) fn term(selector: &LabelSelector) -> NodeSelectorTerm {
    let linux = requirement(OS_LABEL, "In", Some(vec!["linux".to_owned()]));
    let labels = selector.match_labels.iter().flatten();
    let labels = labels.map(|(key, value)| requirement(key, "In", Some(vec![value.clone()])));
    let expressions = selector.match_expressions.iter().flatten();
    let expressions = expressions.map(|written| {
        let values = written.values.clone().filter(|values| !values.is_empty());
        requirement(&written.key, &written.operator, values)
    });
    let all = std::iter::once(linux)
        .chain(labels)
        .chain(expressions)
        .collect();
    NodeSelectorTerm {
        match_expressions: Some(all),
        match_fields: None,
    }
}

fn requirement(key: &str, operator: &str, values: Option<Vec<String>>) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values,
    }
}
