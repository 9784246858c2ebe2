//! Every manifest in `docs/examples` is what its kind says, on a real API server with the CRDs that each is written for.
//!
//! Nothing is stored: `kubectl apply --dry-run=server --validate=strict`, which refuses fields that a schema does not know.
//! What the projects' own webhooks check is not looked at.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that fails should say where"
)]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::Result;
use e2e::cluster::Cluster;
use e2e::{examples, paths, scenario, schemas};
use serde_json::{Value, json};

/// One for all: they store nothing.
static CLUSTER: LazyLock<Cluster> =
    LazyLock::new(|| start().unwrap_or_else(|error| panic!("{error:#}")));

fn start() -> Result<Cluster> {
    let cluster = Cluster::control_plane("examples")?;
    for folder in [schemas::folder()?, paths::repository().join("crds")] {
        // On the server's side: an annotation could not hold CRDs of this size.
        let folder = folder.display().to_string();
        cluster.kubectl(["apply", "--server-side", "-f", &folder])?;
    }
    cluster.kubectl(["wait", "--for=condition=Established", "crd", "--all"])?;
    // Pods are refused until their service account is there.
    let account = ["serviceaccount", "default"];
    scenario::wait_value(&cluster, &account, "{.metadata.name}", 60, |name| {
        name == "default"
    })?;
    Ok(cluster)
}

/// What the server says to a manifest: nothing, or why not.
fn refusal(file: &Path) -> Option<String> {
    let file = file.display().to_string();
    let fixed = ["apply", "--dry-run=server", "--validate=strict", "-f"];
    let answer = CLUSTER.kubectl(fixed.into_iter().chain([file.as_str()]));
    answer.err().map(|error| format!("{error:#}"))
}

/// The same of objects that are made up here.
fn refusal_of(name: &str, object: &Value) -> Option<String> {
    let file = CLUSTER.work().join(format!("{name}.json"));
    std::fs::write(&file, object.to_string()).unwrap();
    refusal(&file)
}

fn name(file: &Path) -> String {
    file.file_stem().unwrap().to_string_lossy().into_owned()
}

/// Every object, with its file and a name for people.
fn objects() -> Vec<(String, Value)> {
    let files: Vec<PathBuf> = examples::files().unwrap();
    assert!(files.len() > 6, "only {} files", files.len());
    let named = files.iter().flat_map(|file| {
        let (name, objects) = (name(file), examples::objects(&name(file)).unwrap());
        objects.into_iter().map(move |object| {
            (
                format!("{name}-{}", object["kind"].as_str().unwrap()),
                object,
            )
        })
    });
    named.collect()
}

#[test]
fn every_example_is_accepted_as_it_is_written() {
    let wrong: Vec<_> = examples::files()
        .unwrap()
        .iter()
        .filter_map(|file| Some(format!("{}: {}", file.display(), refusal(file)?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// CRDs describe a pod's fields; names of volumes, amounts and the like are checked of pods only.
#[test]
fn every_pod_that_an_example_makes_is_accepted() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (name, mut object) in objects() {
        examples::for_each_pod(&mut object, &mut |spec| {
            seen += 1;
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "made"}, "spec": spec});
            if let Some(refusal) = refusal_of(&format!("pod-{seen}"), &pod) {
                wrong.push(format!("{name}: {refusal}"));
            }
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 8, "only {seen} pods");
}

/// A `JobSet`'s CRD describes a job's fields; which values they may have is checked of jobs only.
#[test]
fn every_job_that_a_job_set_makes_is_accepted() {
    let set = examples::object("jobset", "JobSet").unwrap();
    let jobs = set["spec"]["replicatedJobs"].as_array().unwrap();
    assert!(!jobs.is_empty());
    for made in jobs {
        let (name, spec) = (&made["name"], &made["template"]["spec"]);
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec});
        assert_eq!(refusal_of("job", &job), None, "{name}");
    }
}

/// That the others pass says something only if this one does.
#[test]
fn a_misspelled_field_is_refused_in_every_example() {
    for (name, mut object) in objects() {
        let mut places = 0;
        examples::for_each_pod(&mut object, &mut |spec| {
            places += 1;
            spec["containers"][0]["imagePullPolice"] = json!("Always");
        });
        let field = if places > 0 {
            "containers[0].imagePullPolice"
        } else if object["spec"].is_object() {
            object["spec"]["misspelled"] = json!(1);
            "spec.misspelled"
        } else {
            object["misspelled"] = json!(1);
            "misspelled"
        };
        let refusal = refusal_of(&format!("misspelled-{name}"), &object).unwrap_or_default();
        let found = refusal.matches("unknown field").count();
        assert!(
            refusal.contains(field) && found == places.max(1),
            "{name}: {places} pods, {refusal}"
        );
    }
}

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    let mut job = examples::object("mpijob", "MPIJob").unwrap();
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = json!("two");
    let refusal = refusal_of("wrong-type", &job).unwrap_or_default();
    assert!(refusal.contains("Worker.replicas"), "{refusal}");
}
