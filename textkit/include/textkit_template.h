/* SPDX-License-Identifier: Apache-2.0
 *
 * textkit, part template: messages -> prompt text. Shared rules: textkit.h.
 *
 * The environment is the one that transformers gives to chat templates: trim_blocks, lstrip_blocks,
 * loop controls, the generation tag, raise_exception, strftime_now, tojson as json.dumps without
 * ASCII and HTML escaping; values print and behave as Python's.
 * Handles are immutable; any number of threads may render with one at once. A render needs about
 * 1 MB of the calling thread's stack at the deepest recursion that the limits allow.
 */
#ifndef TESSERA_TEXTKIT_TEMPLATE_H_
#define TESSERA_TEXTKIT_TEMPLATE_H_

#include "textkit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tk_template tk_template;

/* Checks the Jinja source. TK_INVALID_ARGUMENT: it does not parse; the message names the line.
 * TK_RESOURCE_EXHAUSTED: it is too long. */
tk_code tk_template_parse(tk_slice source, tk_template** out, tk_buffer* error);

/* Renders a request, one JSON object in UTF-8 with any of
 *   messages, tools, documents   any JSON value; null counts as absent; absent tools and documents
 *                                are None in the template
 *   add_generation_prompt        false when absent
 *   vars                         an object whose members are further variables
 * Key order is kept, integers stay integers (128 bits). strftime_now shows `now_unix_seconds` in
 * UTC. TK_INVALID_ARGUMENT: the template failed, the message is raise_exception's own text when it
 * called that; or the request has another member. TK_RESOURCE_EXHAUSTED: past a limit on steps,
 * recursion, nesting or bytes. */
tk_code tk_template_render(const tk_template* handle, tk_slice request_json,
                           int64_t now_unix_seconds, tk_buffer* text, tk_buffer* error);

void tk_template_free(tk_template* handle);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_TEXTKIT_TEMPLATE_H_ */
