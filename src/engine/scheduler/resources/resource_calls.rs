//! Calls that read a resource of an MCP server: which server they go to, and how rules see them.

use crate::scheduler::{
    resources::resource_tools::{offers, specs},
    toolbox::Toolbox,
};
use crate::{policy, step::Server};
use castor_base::{
    server_offer::{READ_RESOURCE, resource_of},
    tool::ToolCall,
};

impl Toolbox {
    /// The server that a call goes to.
    pub fn server_of_call(&self, call: &ToolCall) -> Option<String> {
        if call.name != READ_RESOURCE {
            return self.foreign_tool(&call.name).map(|it| it.server.clone());
        }
        resource_of(&call.args, offers(&self.servers)).ok().map(|it| it.0.to_owned())
    }

    /// The server whose resource a call reads, as rules see it. What a server lists is read as a file is. What the model
    /// makes up goes out to the server as the arguments of its tools do, and a rule that denies all of a server's tools
    /// denies its resources.
    pub fn server_of_resource(&self, call: &ToolCall) -> Option<String> {
        let spec = specs().iter().find(|it| it.name == READ_RESOURCE && call.name == READ_RESOURCE)?;
        let (server, uri) = resource_of(&call.args, offers(&self.servers)).ok()?;
        let is_listed = |it: &Server| it.name == server && it.offer.resources.iter().any(|it| it.uri == uri);
        let is_trusted = || self.foreign_tools.iter().any(|it| it.server == server && it.trusted);
        let is_free = (self.servers.iter().any(is_listed) || is_trusted())
            && policy::unconditional_deny(&self.rules, spec, Some(server), self.interactive).is_none();
        (!is_free).then(|| server.to_owned())
    }
}
