//! Public addresses: what a server names must not lead into this machine or its network.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use tokio::net::lookup_host;

/// Looks names up, and leaves addresses out that are not public.
pub(super) struct PublicNames {
    /// Who may be anywhere: the user named them.
    pub(super) proxies: Vec<String>,
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let is_proxy = self.proxies.iter().any(|it| it.eq_ignore_ascii_case(name.as_str()));
        Box::pin(async move {
            let all = lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = all.filter(|it| is_proxy || is_public(it.ip())).collect();
            if found.is_empty() {
                let why = format!("{} has no public address", name.as_str());
                return Err(io::Error::other(why).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Tells whether an address of this kind stands in the URL itself: no name is looked up for it.
pub fn has_private_address(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(it) => !is_public(it),
        Err(_) => bare == "localhost" || bare.ends_with(".localhost"),
    }
}

/// Where clouds tell a machine who it is, with keys, at addresses that look like others.
const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Of a network that only its members reach, such as a company's; not of this machine, its link or its cloud.
pub fn is_company_network(address: IpAddr) -> bool {
    let is_private = match address.to_canonical() {
        IpAddr::V4(it) => {
            let [a, b, ..] = it.octets();
            it.is_private() || a == 100 && (64..128).contains(&b)
        }
        IpAddr::V6(it) => it.is_unique_local(),
    };
    is_private && !METADATA.contains(&address)
}

/// Neither of this machine nor of a network that only its members reach.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        it if METADATA.contains(&it) => false,
        IpAddr::V4(it) => is_public_v4(it),
        IpAddr::V6(it) => match it.segments() {
            // Version 4 in it: mapped, translated (NAT64), 6to4.
            [0, 0, 0, 0, 0, 0xffff | 0, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => {
                is_public_v4(Ipv4Addr::from((u32::from(a) << 16) | u32::from(b)))
            }
            // Local (fc00::/7), of the link (fe80::/10), formerly of the site, multicast, for documents.
            [first, second, ..] => {
                !matches!(first, 0xfc00..=0xffff) && (first, second) != (0x2001, 0xdb8) && !it.is_unspecified()
            }
        },
    }
}

fn is_public_v4(it: Ipv4Addr) -> bool {
    let [a, b, c, _] = it.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let protocols = (a, b, c) == (192, 0, 0);
    let benchmarks = a == 198 && (b == 18 || b == 19);
    !(it.is_private()
        || it.is_loopback()
        || it.is_link_local()
        || it.is_documentation()
        || shared
        || protocols
        || benchmarks
        || a == 0
        || a >= 224)
}

#[cfg(test)]
mod tests {
    use reqwest::{
        Url,
        dns::{Name, Resolve},
    };

    use super::{PublicNames, has_private_address, is_public};

    /// A name that leads here is no better than the address; the proxy's own may.
    #[tokio::test]
    async fn names_are_looked_up_before_they_count() {
        let name = || "localhost".parse::<Name>().unwrap();
        assert!(PublicNames { proxies: Vec::new() }.resolve(name()).await.is_err());
        assert!(PublicNames { proxies: vec!["LocalHost".to_owned()] }.resolve(name()).await.is_ok());
    }

    #[test]
    fn addresses_by_reach() {
        for it in ["8.8.8.8", "100.63.0.1", "172.32.0.1", "2606:4700::1", "::ffff:8.8.8.8"] {
            assert!(is_public(it.parse().unwrap()), "{it}");
        }
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.0.8",
            "::1",
            "::",
            "fc00::1",
            "fe80::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "::127.0.0.1",
        ];
        for it in private {
            assert!(!is_public(it.parse().unwrap()), "{it}");
        }
        for (url, want) in [
            ("http://localhost:1/", true),
            ("http://a.localhost/", true),
            ("http://[::1]/", true),
            // URLs have more than one spelling for an address.
            ("http://0x7f.1/", true),
            ("http://2130706433/", true),
            ("https://example.com/", false),
        ] {
            assert_eq!(has_private_address(&Url::parse(url).unwrap()), want, "{url}");
        }
    }
}
