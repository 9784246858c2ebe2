use super::policy::{NAME, binding, policy};

#[test]
fn the_policy_as_it_is_applied() {
    let (policy, binding) = (
        serde_yaml::to_string(&policy("gpu-rdma")),
        serde_yaml::to_string(&binding()),
    );
    insta::assert_snapshot!(format!("{}---\n{}", policy.unwrap(), binding.unwrap()));
}

#[test]
fn the_hooks_may_touch_our_policy_and_no_other() {
    let hooks = [
        include_str!("../../../charts/gpu-rdma-operator/templates/hooks/install.yaml"),
        include_str!("../../../charts/gpu-rdma-operator/templates/hooks/uninstall.yaml"),
    ];
    for hook in hooks {
        let rules: Vec<_> = hook
            .split("- apiGroups:")
            .filter(|rule| rule.starts_with(" [admissionregistration.k8s.io]"))
            .collect();
        assert!(!rules.is_empty(), "{hook}");
        for rule in rules {
            let names = rule.lines().map(str::trim);
            let names: Vec<_> = names
                .filter(|line| line.starts_with("resourceNames:"))
                .collect();
            assert_eq!(names, [format!("resourceNames: [{NAME}]")], "{rule}");
        }
    }
}
