//! Parts that all routes share.

use crate::access::Access;
use crate::link::AppLink;
use crate::metrics::Metrics;
use crate::queue::Queue;

/// Parts that all routes share.
#[derive(Clone)]
pub struct RouteState {
    pub link: AppLink,
    pub queue: Queue,
    pub metrics: Metrics,
    pub access: Access,
}
