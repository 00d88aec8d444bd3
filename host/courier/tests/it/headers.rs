//! Which headers a guest may set.

use interlock_courier::{Forbidden, guest_may_set};

#[test]
fn what_frames_names_or_widens_a_request_is_not_a_guests_to_set() {
    for (why, names) in [
        (
            None,
            &[
                "Accept",
                "Content-Type",
                "If-Match",
                "User-Agent",
                "X-Trace",
                "traceparent",
                "Interlocked",
                "Hosting",
                "Prefer",
            ][..],
        ),
        (Some(Forbidden::NoName), &["", "a b", "a:", "a\r\nb", "h\u{f6}st", "(a)", "a/b", ":path"]),
        (
            Some(Forbidden::Framing),
            &[
                "Connection",
                "Content-Length",
                "Content_Length",
                "Expect",
                "HOST",
                "host",
                "HTTP2-Settings",
                "Keep-Alive",
                "Proxy-Connection",
                "TE",
                "Trailer",
                "Transfer-Encoding",
                "transfer_encoding",
                "Upgrade",
                "Accept-Encoding",
            ],
        ),
        (
            Some(Forbidden::Hosts),
            &[
                "Idempotency-Key",
                "idempotency_key",
                "X-Idempotency-Key",
                "Interlock-Fencing-Token",
                "INTERLOCK-ENTITY",
                "Interlock_Fencing_Token",
                "X-Interlock-Anything",
                "Forwarded",
                "Via",
                "X-Forwarded-For",
                "X-Forwarded-Host",
                "X-Real-IP",
                "Sec-Fetch-Site",
            ],
        ),
        (
            Some(Forbidden::Credential),
            &["Authorization", "authorization", "Cookie", "Proxy-Authorization", "Proxy-Authenticate"],
        ),
        (
            Some(Forbidden::Override),
            &["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X_Rewrite_Url"],
        ),
    ] {
        for name in names {
            assert_eq!(guest_may_set(name).err(), why, "{name:?}");
        }
    }
}
