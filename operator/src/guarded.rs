//! An object of ours that may not be readable: what one version of the CRD stored, another may not know. One such
//! object must not take the whole watch of its kind with it. Pure. Shares what it holds, for thousands of nodes.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use serde::{Deserialize, Deserializer};

/// An object, or what is known of one that cannot be read.
#[derive(Clone, Debug)]
pub struct Guarded<K>(Result<Arc<K>, InvalidObject>);

impl<K> Guarded<K> {
    /// The object; else why it cannot be read.
    ///
    /// # Errors
    /// What the deserialiser said.
    pub fn read(&self) -> Result<&Arc<K>, &str> {
        self.0.as_ref().map_err(|invalid| invalid.error.as_str())
    }
}

impl<K> From<K> for Guarded<K> {
    fn from(object: K) -> Self {
        Self(Ok(Arc::new(object)))
    }
}

impl<'de, K: Deserialize<'de> + Resource> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let DeserializeGuard(result) = DeserializeGuard::<K>::deserialize(deserializer)?;
        Ok(Self(result.map(Arc::new)))
    }
}

impl<K: Resource + Clone> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(kind: &K::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &K::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &K::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Ok(object) => object.meta(),
            Err(invalid) => &invalid.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => Arc::make_mut(object).meta_mut(),
            Err(invalid) => &mut invalid.metadata,
        }
    }
}

#[cfg(test)]
mod tests;
