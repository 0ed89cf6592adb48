// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json that do not change what a forward pass computes, each with its reason. Adding
// one is a claim about every model of every family here; a key that matters for some values is
// not listed but read or checked (hf_config.cc).
#pragma once

#include <string_view>

namespace tessera::model {

inline constexpr std::string_view kHfHarmlessKeys[] = {
    // Where the file comes from and who wrote it.
    "_name_or_path",
    "_commit_hash",
    "transformers_version",
    "transformers.js_config",
    "unsloth_fixed",
    "unsloth_version",
    "model_type",
    "architectures",
    "tokenizer_class",
    "task_specific_params",
    "finetuning_task",
    "problem_type",
    "id2label",
    "label2id",
    "num_labels",
    "language_model_only",
    // The precision weights were stored in; the weights say it themselves.
    "torch_dtype",
    "dtype",
    "use_bfloat16",
    // Training only.
    "attention_dropout",
    "hidden_dropout",
    "initializer_range",
    "initializer_factor",
    "gradient_checkpointing",
    "router_aux_loss_coef",
    // How an implementation computes the same thing.
    "use_cache",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "attn_implementation",
    "_flash_attn_2_enabled",
    "use_flash_attention_2",
    "torchscript",
    "chunk_size_feed_forward",
    // What a trainer or tokenizer took at most; max_position_embeddings counts.
    "max_sequence_length",
    // What a Python call returns.
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    // Tokens: read by special_tokens.cc, no part of the forward pass.
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "unk_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "bad_words_ids",
    "begin_suppress_tokens",
    "suppress_tokens",
    "prefix",
    // Sampling and search parameters that old writers stored here; they never belonged to the
    // model.
    "max_length",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "num_return_sequences",
    "output_scores",
    "return_dict_in_generate",
    "exponential_decay_length_penalty",
    "remove_invalid_values",
    // Says whether an encoder is used as a decoder; decoders have it false or true alike.
    "is_decoder",
    // A marker of the SmolLM writers; the architecture says the same.
    "is_llama_config",
};

}  // namespace tessera::model
