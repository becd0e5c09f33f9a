//! Logout by the browser and by the provider.

pub(crate) mod end_session;
pub(crate) mod logout_template;
pub(crate) mod logout_token;
