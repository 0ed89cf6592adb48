/* SPDX-License-Identifier: Apache-2.0
 *
 * textkit: tokenizers, chat templates and output constraints (Rust) behind a C ABI.
 * This header holds what the parts share; the parts are
 *   textkit_tokenizer.h   text <-> token ids
 *   textkit_template.h    messages -> prompt text
 *   textkit_constraint.h  grammar -> masks of allowed tokens
 *
 * Rules of every function:
 *  - Input (tk_slice, arrays) belongs to the caller and is only read during the call.
 *  - Output (tk_buffer, handles) belongs to the caller afterwards: tk_buffer_free() and the part's
 *    *_free() release it. Out-parameters are written on success only; they need no initial value.
 *  - A function that can fail returns a tk_code and takes `error`: on failure one sentence in UTF-8
 *    that the caller frees, on success an empty buffer. `error` may be NULL.
 *  - No panic crosses the ABI: one inside becomes TK_INTERNAL with its message.
 *  - Handles are immutable and usable from any thread at once unless their part says otherwise.
 *    Free a handle once, when no call uses it.
 */
#ifndef TESSERA_TEXTKIT_H_
#define TESSERA_TEXTKIT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t tk_code;
enum {
  TK_OK = 0,
  TK_INVALID_ARGUMENT = 1,   /* Wrong input: fix it. */
  TK_RESOURCE_EXHAUSTED = 2, /* Past a limit (size, depth, fuel). */
  TK_UNIMPLEMENTED = 3,      /* Known, but not supported; the message names it. */
  TK_INTERNAL = 4            /* A bug in textkit or below it. */
};

/* Bytes of the caller. `data` may be NULL when `len` is 0. */
typedef struct tk_slice {
  const uint8_t* data;
  size_t len;
} tk_slice;

/* Bytes of textkit, released by tk_buffer_free(). Text is UTF-8 without a terminating zero. */
typedef struct tk_buffer {
  uint8_t* data;
  size_t len;
  size_t capacity; /* For tk_buffer_free() only. */
} tk_buffer;

/* Releases and empties the buffer. NULL and empty buffers are fine. */
void tk_buffer_free(tk_buffer* buffer);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_TEXTKIT_H_ */
