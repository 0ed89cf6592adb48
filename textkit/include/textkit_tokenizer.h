/* SPDX-License-Identifier: Apache-2.0
 *
 * textkit, part tokenizer: text <-> token ids. Shared rules: textkit.h.
 *
 * tk_tokenizer is immutable: any number of threads may use one. tk_detokenizer is one token stream:
 * one thread at a time. Ids are uint32_t; an id outside the vocabulary is TK_INVALID_ARGUMENT.
 */
#ifndef TESSERA_TEXTKIT_TOKENIZER_H_
#define TESSERA_TEXTKIT_TOKENIZER_H_

#include "textkit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tk_tokenizer tk_tokenizer;
typedef struct tk_detokenizer tk_detokenizer;

/* Ids of textkit, released by tk_ids_free(). */
typedef struct tk_ids {
  uint32_t* data;
  size_t len;
  size_t capacity; /* For tk_ids_free() only. */
} tk_ids;

/* Releases and empties. NULL and empty are fine. */
void tk_ids_free(tk_ids* ids);

/* Reads the content of tokenizer.json. TK_INVALID_ARGUMENT says what is wrong with it. Its
 * truncation and padding are ignored: a prompt is never cut or padded here. */
tk_code tk_tokenizer_from_json(tk_slice json, tk_tokenizer** out, tk_buffer* error);

/* Opens a stored form (tk_tokenizer_to_table()) in place: `table` must stay readable and unchanged
 * until `release(context)`, which comes once, from any thread: when the last user of the tokenizer
 * is gone, or during this call when it fails. TK_INVALID_ARGUMENT for damage, TK_UNIMPLEMENTED for
 * another version of the format, TK_RESOURCE_EXHAUSTED past the limit. */
tk_code tk_tokenizer_from_table(tk_slice table, void (*release)(void*), void* context,
                                tk_tokenizer** out, tk_buffer* error);

/* What a GGUF file says of its tokenizer. Arrays are indexed by token id. */
typedef struct tk_gguf_vocabulary {
  tk_slice model;      /* tokenizer.ggml.model */
  tk_slice pre;        /* tokenizer.ggml.pre, may be empty */
  tk_slice model_name; /* general.name, may be empty */
  const tk_slice* tokens;
  size_t tokens_count;
  const float* scores; /* tokens_count of them, or none */
  size_t scores_count;
  const int32_t* token_types; /* tokens_count of them, or none */
  size_t token_types_count;
  const tk_slice* merges; /* "left right" */
  size_t merges_count;
  tk_slice charsmap; /* tokenizer.ggml.precompiled_charsmap, may be empty */
  int64_t bos_id;    /* -1 where the file names none */
  int64_t eos_id;
  int64_t unk_id;
  int32_t add_bos; /* 1, 0, or -1 where the file does not say */
  int32_t add_eos;
  int32_t add_space_prefix;
  int32_t remove_extra_whitespaces;
} tk_gguf_vocabulary;

/* TK_UNIMPLEMENTED names a model or pre-tokenizer that is not known. */
tk_code tk_tokenizer_from_gguf(const tk_gguf_vocabulary* vocabulary, tk_tokenizer** out,
                               tk_buffer* error);

/* NULL is fine. */
void tk_tokenizer_free(tk_tokenizer* tokenizer);

/* `add_special`: let the post-processor add BOS and its like. `parse_special`: recognise special
 * tokens written in the text. TK_INVALID_ARGUMENT when the text is not UTF-8. */
tk_code tk_tokenizer_encode(const tk_tokenizer* tokenizer, tk_slice text, bool add_special,
                            bool parse_special, tk_ids* out, tk_buffer* error);

/* The text of `count` ids; bytes that are not UTF-8 become U+FFFD. */
tk_code tk_tokenizer_decode(const tk_tokenizer* tokenizer, const uint32_t* ids, size_t count,
                            bool skip_special, tk_buffer* out, tk_buffer* error);

/* One past the largest id, added tokens included. */
uint32_t tk_tokenizer_vocab_size(const tk_tokenizer* tokenizer);
/* The token as the vocabulary spells it; empty for an id that has none. */
void tk_tokenizer_token_text(const tk_tokenizer* tokenizer, uint32_t id, tk_buffer* out);
/* The bytes that the token adds in the middle of a text; they need not be UTF-8. */
void tk_tokenizer_token_bytes(const tk_tokenizer* tokenizer, uint32_t id, tk_buffer* out);
bool tk_tokenizer_is_special(const tk_tokenizer* tokenizer, uint32_t id);
/* -1 when the vocabulary has no such token. */
int64_t tk_tokenizer_find(const tk_tokenizer* tokenizer, tk_slice text);
/* tokenizer.json text that makes an equal tokenizer. */
tk_code tk_tokenizer_to_json(const tk_tokenizer* tokenizer, tk_buffer* out, tk_buffer* error);

/* The stored form: a flat table that gives what this tokenizer gives, compared before it is
 * returned. TK_UNIMPLEMENTED says why this tokenizer has none. */
tk_code tk_tokenizer_to_table(const tk_tokenizer* tokenizer, tk_buffer* out, tk_buffer* error);
/* The special tokens, ascending. */
void tk_tokenizer_special_ids(const tk_tokenizer* tokenizer, tk_ids* out);

/* A stream shares the tokenizer and may outlive its handle. */
tk_code tk_detokenizer_new(const tk_tokenizer* tokenizer, bool skip_special, tk_detokenizer** out,
                           tk_buffer* error);
/* NULL is fine. */
void tk_detokenizer_free(tk_detokenizer* stream);
/* `out`: the text that this token completed, whole characters only, often empty. */
tk_code tk_detokenizer_push(tk_detokenizer* stream, uint32_t id, tk_buffer* out, tk_buffer* error);
/* `out`: the rest of the text. The stream then starts anew. */
tk_code tk_detokenizer_flush(tk_detokenizer* stream, tk_buffer* out, tk_buffer* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_TEXTKIT_TOKENIZER_H_ */
