/* SPDX-License-Identifier: Apache-2.0
 *
 * textkit, part constraint: grammar -> masks of allowed tokens. Shared rules: textkit.h.
 *
 * A vocabulary is immutable and shared by any number of threads and grammars (it lives as long as
 * the last of them). A grammar is immutable, compiled once and shared likewise. A constraint is the
 * state of one sequence under a grammar: one thread at a time, but it may move between threads.
 */
#ifndef TESSERA_TEXTKIT_CONSTRAINT_H_
#define TESSERA_TEXTKIT_CONSTRAINT_H_

#include "textkit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tk_vocabulary tk_vocabulary;
typedef struct tk_grammar tk_grammar;
typedef struct tk_constraint tk_constraint;

typedef int32_t tk_grammar_kind;
enum {
  TK_GRAMMAR_JSON_SCHEMA = 0, /* JSON Schema as JSON text. */
  TK_GRAMMAR_REGEX = 1,       /* Rust's regular expressions; the whole output must match. */
  TK_GRAMMAR_LARK = 2,        /* llguidance's variant of Lark. */
  TK_GRAMMAR_CHOICES = 3,     /* A JSON array of strings, one of which is the output. */
  TK_GRAMMAR_TAGS = 4,        /* Text with structured parts, as JSON: see text/grammar.h. */
  /* A JSON array, joined, of Lark text and forms: {"json_schema": ...} or, as the source of that
   * kind, {"regex" | "lark" | "choices" | "tags": "..."}. */
  TK_GRAMMAR_PARTS = 5
};

/* tokens[id] are the bytes that token id contributes to text (no UTF-8 needed; empty = never
 * allowed). special[id] is not 0 for tokens that contribute none: their bytes are the name by which
 * a grammar asks for them. eos ends the output. */
tk_code tk_vocabulary_new(const tk_slice* tokens, const uint8_t* special, size_t count,
                          const int32_t* eos, size_t eos_count, tk_vocabulary** out,
                          tk_buffer* error);
void tk_vocabulary_free(tk_vocabulary* handle);

/* TK_INVALID_ARGUMENT: the grammar is wrong, or cannot be satisfied. TK_UNIMPLEMENTED: it uses what
 * is not supported; the message names it. TK_RESOURCE_EXHAUSTED: it is too large. */
tk_code tk_grammar_new(const tk_vocabulary* vocabulary, tk_grammar_kind kind, tk_slice source,
                       tk_grammar** out, tk_buffer* error);
void tk_grammar_free(tk_grammar* handle);

/* What of the source has no effect, a sentence a line; usually nothing. */
tk_code tk_grammar_notes(const tk_grammar* grammar, tk_buffer* lines, tk_buffer* error);

/* Whether a finished output has the form, looked at from outside: JSON by another implementation of
 * JSON Schema, text by the grammar, where that shows it (not: tags, parts, Lark that names or counts
 * tokens). TK_INVALID_ARGUMENT: it has not. TK_RESOURCE_EXHAUSTED: telling would take too long. */
tk_code tk_grammar_validate(const tk_grammar* grammar, tk_slice text, tk_buffer* error);

/* A constraint that has no token yet. It keeps what it needs of the grammar. */
tk_code tk_grammar_start(const tk_grammar* grammar, tk_constraint** out, tk_buffer* error);
void tk_constraint_free(tk_constraint* handle);

/* Bit id % 32 of words[id / 32] is set where token id may come next; end tokens are where the text
 * may end. All bits are 0 once finished. word_count >= ceil(vocabulary / 32); words beyond are
 * cleared. TK_RESOURCE_EXHAUSTED: the grammar costs too much here; the constraint is then unusable. */
tk_code tk_constraint_mask(tk_constraint* handle, uint32_t* words, size_t word_count,
                           tk_buffer* error);

/* Appends a token. TK_INVALID_ARGUMENT: the mask does not allow it; nothing changed. */
tk_code tk_constraint_commit(tk_constraint* handle, int32_t token, tk_buffer* error);

/* Whether the text so far is complete, so that an end token may come. */
tk_code tk_constraint_is_accepting(tk_constraint* handle, bool* accepting, tk_buffer* error);
/* Whether nothing but an end token may come. */
bool tk_constraint_must_end(const tk_constraint* handle);
/* Whether an end token has come. */
bool tk_constraint_is_finished(const tk_constraint* handle);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_TEXTKIT_CONSTRAINT_H_ */
