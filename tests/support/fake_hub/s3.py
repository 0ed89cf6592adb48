# SPDX-License-Identifier: Apache-2.0
"""The two calls of S3 that a reader needs, path style, with signatures checked (SigV4)."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
import urllib.parse
from datetime import datetime, timezone
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from .handlers import HubHandler


def route(handler: "HubHandler", path: str) -> bool:
    """Whether the path was one of a bucket's."""
    bucket, _, key = path.lstrip("/").partition("/")
    if bucket not in handler.hub.buckets:
        return False
    if handler.hub.s3_keys and refused(handler):
        return True
    objects = handler.hub.buckets[bucket]
    if not key:
        list_objects(handler, bucket)
        return True
    fault = handler.hub.faults.take("s3", key)
    if handler.took_fault(fault):
        return True
    if key not in objects:
        error(handler, 404, "NoSuchKey", "The specified key does not exist.")
    else:
        content = objects[key]
        handler.send_content("s3", key, content, f'"{content.sha256[:32]}"', {}, fault)
    return True


def refused(handler: "HubHandler") -> bool:
    """What S3 looks at before the signature itself, and that."""
    region, hub = handler.hub.s3_region, handler.hub
    authorization = handler.headers.get("Authorization", "")
    if region and f"/{region}/s3/aws4_request" not in authorization:
        error(handler, 400, "AuthorizationHeaderMalformed", f"expecting '{region}'",
              {"x-amz-bucket-region": region})
        return True
    try:
        stamp = datetime.strptime(handler.headers.get("x-amz-date", ""), "%Y%m%dT%H%M%SZ")
    except ValueError:
        error(handler, 403, "AccessDenied", "no valid x-amz-date")
        return True
    ahead = time.time() + hub.clock_ahead - stamp.replace(tzinfo=timezone.utc).timestamp()
    if abs(ahead) > 15 * 60:
        error(handler, 403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
        return True
    if (why := signature_error(handler)) is not None:
        error(handler, 403, "SignatureDoesNotMatch", why)
        return True
    return False


def error(handler: "HubHandler", code: int, name: str, message: str,
          headers: dict[str, str] | None = None) -> None:
    body = f"<?xml version=\"1.0\"?><Error><Code>{name}</Code><Message>{escape(message)}</Message></Error>"
    handler.answer(code, body.encode(), "application/xml", headers)


def list_objects(handler: "HubHandler", bucket: str) -> None:
    query = handler.query
    prefix = query.get("prefix", "")
    keys = sorted(key for key in handler.hub.buckets[bucket] if key.startswith(prefix))
    start = int(query.get("continuation-token", "0"))
    page = keys[start:start + handler.hub.s3_page]
    more = start + len(page) < len(keys)
    rows = "".join(
        f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>&quot;{content.sha256[:32]}&quot;</ETag><Size>{content.size}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
        for key in page for content in [handler.hub.buckets[bucket][key]])
    token = f"<NextContinuationToken>{start + len(page)}</NextContinuationToken>" if more else ""
    body = ('<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{rows}{token}</ListBucketResult>")
    handler.answer(200, body.encode(), "application/xml")


def signature_error(handler: "HubHandler") -> str | None:
    """What AWS would find wrong with the request's Authorization."""
    match = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?"
        r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
        handler.headers.get("Authorization", ""))
    if match is None:
        return "no AWS4-HMAC-SHA256 authorization for s3"
    key, day, region, names, signature = match.groups()
    if key not in handler.hub.s3_keys:
        return "unknown access key"
    signed = names.split(";")
    for needed in ("host", "x-amz-date"):
        if needed not in signed:
            return f"{needed} is not signed"
    url = urllib.parse.urlsplit(handler.path)
    fields = sorted(field.partition("=")[::2] for field in url.query.split("&") if field)
    query = "&".join("=".join(field) for field in fields)
    headers = "".join(f"{name}:{' '.join(handler.headers.get(name, '').split())}\n" for name in signed)
    payload = handler.headers.get("x-amz-content-sha256", hashlib.sha256(b"").hexdigest())
    canonical = "\n".join([handler.command, url.path, query, headers, names, payload])
    stamp = handler.headers.get("x-amz-date", "")
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    secret = b"AWS4" + handler.hub.s3_keys[key].encode()
    for part in (day, region, "s3", "aws4_request"):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    expected = hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
    return None if hmac.compare_digest(expected, signature) else "the signature does not match"
