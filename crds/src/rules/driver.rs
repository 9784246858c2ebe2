//! Rules of `driver`. What reaches a shell or a package manager on the host is held to a grammar.

use schemars::Schema;

use super::Message::Text;
use super::{Rule, attach};
use crate::schema::string_map;

/// Keys of `/etc/infiniband/openib.conf` that may be set. `openibd` sources that file as shell. Left out are the
/// hooks (they name commands), `NODE_DESC` (one text for all nodes would hide which is which), options of the
/// installer and keys that current drivers ignore.
pub const OPENIB_CONF_KEYS: &[&str] = &[
    "IPOIB_LOAD",
    "ISER_LOAD",
    "MLX4_LOAD",
    "MLX5_LOAD",
    "NODE_DESC_TIME_BEFORE_UPDATE",
    "NODE_DESC_UPDATE_TIMEOUT",
    "ONBOOT",
    "POST_START_DELAY",
    "RDMA_CM_LOAD",
    "RDMA_UCM_LOAD",
    "RDS_LOAD",
    "RENICE_IB_MAD",
    "RUN_AFFINITY_TUNER",
    "RUN_MLNX_TUNE",
    "RUN_SYSCTL",
    "SDP_LOAD",
    "SET_IPOIB_CM",
    "SRPHA_ENABLE",
    "SRPT_LOAD",
    "SRP_DAEMON_ENABLE",
    "SRP_LOAD",
    "UCM_LOAD",
    "UMAD_LOAD",
    "UVERBS_LOAD",
];

pub(crate) fn driver(schema: &mut Schema) {
    attach(schema, DRIVER);
}

const DRIVER: &[Rule] = &[
    (
        "self.source != 'Container' || has(self.container)",
        Text(
            "driver.container is missing: source Container needs repository, image and version there",
        ),
    ),
    (
        "self.source == 'Container' || !has(self.container)",
        Text(
            "driver.container is set but driver.source is not Container: write source: Container, or remove driver.container",
        ),
    ),
    (
        "self.source != 'HostPackages' || has(self.hostPackages)",
        Text(
            "driver.hostPackages is missing: source HostPackages needs version and packages there",
        ),
    ),
    (
        "self.source == 'HostPackages' || !has(self.hostPackages)",
        Text(
            "driver.hostPackages is set but driver.source is not HostPackages: write source: HostPackages, or remove driver.hostPackages",
        ),
    ),
];

/// The allow-list is written into the rule and into its message, from [`OPENIB_CONF_KEYS`].
pub(crate) fn openib_conf(schema: &mut Schema) {
    string_map(schema, 32, 128);
    let allowed: Vec<_> = OPENIB_CONF_KEYS
        .iter()
        .map(|key| format!("'{key}'"))
        .collect();
    let keys = serde_json::json!({
        "rule": format!("self.all(key, key in [{}])", allowed.join(", ")),
        "message": format!(
            "driver.openibConf has a key that may not be set: openibd sources the file as shell, write only {}",
            OPENIB_CONF_KEYS.join(", ")
        ),
    });
    let values = serde_json::json!({
        "rule": "self.all(key, self[key].matches('^[A-Za-z0-9_.,:/+][A-Za-z0-9_.,:/+-]*$'))",
        "message": "driver.openibConf has a value with other characters: write only letters, digits and _ . , : / + -, not beginning with -, such as yes",
    });
    schema.insert(
        "x-kubernetes-validations".to_owned(),
        serde_json::Value::Array(vec![keys, values]),
    );
}

pub(crate) fn modules(schema: &mut Schema) {
    attach(schema, MODULES);
}

const MODULES: &[Rule] = &[
    (
        "self.all(name, name.matches('^[A-Za-z0-9_][A-Za-z0-9_-]*$'))",
        Text(
            "driver.modules has an entry that is no module name: write letters, digits, _ and - only, such as ib_umad, without path, .ko or options",
        ),
    ),
    (
        "self.all(name, self.exists_one(other, other == name))",
        Text("driver.modules names a module twice: write each once"),
    ),
];

pub(crate) fn container(schema: &mut Schema) {
    attach(schema, CONTAINER);
}

const CONTAINER: &[Rule] = &[
    (
        "self.repository.matches('^[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)*$')",
        Text(
            "driver.container.repository is no repository: write host[:port]/path without https://, such as nvcr.io/nvidia/mellanox",
        ),
    ),
    (
        "self.image.matches('^[a-z0-9]+([._-]+[a-z0-9]+)*$')",
        Text(
            "driver.container.image is no image name: write it without registry and tag, such as doca-driver",
        ),
    ),
    (
        "self.version.matches('^([A-Za-z0-9_][A-Za-z0-9._-]*|sha256:[0-9a-f]{64})$')",
        Text(
            "driver.container.version is no image tag: write letters, digits and _ . - only, such as doca3.2.2-25.10-1.2.8.0-2, or a digest, sha256: and 64 hexadecimal digits",
        ),
    ),
];

pub(crate) fn env(schema: &mut Schema) {
    string_map(schema, 64, 1024);
    attach(
        schema,
        &[
            (
                "self.all(name, name.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",
                Text(
                    "driver.container.env has a key that is no variable name: write letters, digits and _ only, not starting with a digit",
                ),
            ),
            (
                "self.all(name, self[name].matches('^([A-Za-z0-9_.,:/@%+=~*][A-Za-z0-9_.,:/@%+=~* -]*)?$'))",
                Text(
                    "driver.container.env has a value with other characters: the driver container's scripts read it, write letters, digits, blanks and _ . , : / @ % + = ~ * - only, not beginning with - or a blank",
                ),
            ),
        ],
    );
}

pub(crate) fn host_packages(schema: &mut Schema) {
    attach(schema, HOST_PACKAGES);
}

const HOST_PACKAGES: &[Rule] = &[
    (
        "self.version.matches('^[A-Za-z0-9][A-Za-z0-9+.~:-]*$')",
        Text(
            "driver.hostPackages.version is no version: write letters, digits and + . ~ : - only, such as 3.2.2",
        ),
    ),
    (
        "!has(self.packages) || self.packages.all(name, name.matches('^[A-Za-z0-9][A-Za-z0-9+._:~-]*$'))",
        Text(
            "driver.hostPackages.packages has an entry that is no package name: write names without path, version or options, such as doca-ofed",
        ),
    ),
    (
        "!has(self.repositories) || self.repositories.all(one, self.repositories.exists_one(other, other.url == one.url))",
        Text("driver.hostPackages.repositories has a url twice: write each once"),
    ),
];

pub(crate) fn repository(schema: &mut Schema) {
    attach(schema, REPOSITORY);
}

const REPOSITORY: &[Rule] = &[
    (
        "self.url.matches('^https://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~%/+-]*)?$')",
        Text(
            "driver.hostPackages.repositories[].url is no https:// URL: write https://host/path, without user, query or fragment",
        ),
    ),
    (
        "self.signingKey.startsWith('-----BEGIN PGP PUBLIC KEY BLOCK-----') || self.signingKey.matches('^https://[A-Za-z0-9.-]+(:[0-9]+)?/[A-Za-z0-9._~%/+-]*$')",
        Text(
            "driver.hostPackages.repositories[].signingKey is neither an armoured public key nor an https:// URL: write one of them, unsigned repositories are refused",
        ),
    ),
];
