//! Which model serves this request, and what to do when it fails.
