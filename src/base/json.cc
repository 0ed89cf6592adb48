// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/src.hpp>  // The library's one compiled copy.
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "base/json_error.h"

namespace tessera::json {
namespace {

namespace bj = boost::json;

constexpr size_t kMaxQuotedKeyBytes = 100;

/// The double that is nearest to the literal. The library's own, `rough`, may be off in the last
/// digit; it counts where the literal is beyond all doubles: infinite, or nearest to zero.
double Nearest(std::string_view literal, double rough) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(literal.data(), literal.data() + literal.size(), number);
  return error == std::errc() && end == literal.data() + literal.size() ? number : rough;
}

/// Builds values bottom-up on a stack of open containers. Boost's own handler neither counts keys
/// nor refuses duplicates, which safetensors headers need.
class Handler {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  explicit Handler(const Limits& limits) : limits_(limits) {}

  Value TakeRoot() { return std::move(root_); }
  const std::string& complaint() const { return complaint_; }
  json::Open open() const {
    if (stack_.empty()) return json::Open::kNothing;
    return stack_.back().value.is_object() ? json::Open::kObject : json::Open::kArray;
  }

  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_object_begin(bj::error_code&) { return Begin(Value(bj::object_kind)); }
  bool on_object_end(std::size_t, bj::error_code&) { return End(); }
  bool on_array_begin(bj::error_code&) { return Begin(Value(bj::array_kind)); }
  bool on_array_end(std::size_t, bj::error_code&) { return End(); }

  bool on_key_part(std::string_view part, std::size_t, bj::error_code&) {
    text_ += part;
    return true;
  }
  bool on_key(std::string_view part, std::size_t, bj::error_code& ec) {
    text_ += part;
    Frame& frame = stack_.back();
    const Object& object = frame.value.get_object();
    if (limits_.unique_keys && object.contains(text_))
      return Refuse(
          fmt::format("duplicate key {}, expected each key once", Quote(text_, kMaxQuotedKeyBytes)),
          ec);
    if (object.size() >= limits_.max_keys)
      return Refuse(fmt::format("more than {} keys in one object", limits_.max_keys), ec);
    frame.key = std::move(text_);
    text_.clear();
    return true;
  }
  bool on_string_part(std::string_view part, std::size_t, bj::error_code&) {
    text_ += part;
    return true;
  }
  bool on_string(std::string_view part, std::size_t, bj::error_code&) {
    text_ += part;
    Value value(text_);
    text_.clear();
    return Add(std::move(value));
  }
  bool on_number_part(std::string_view part, bj::error_code&) {
    text_ += part;
    return true;
  }
  bool on_int64(int64_t number, std::string_view, bj::error_code&) { return AddNumber(number); }
  bool on_uint64(uint64_t number, std::string_view, bj::error_code&) { return AddNumber(number); }
  bool on_double(double rough, std::string_view part, bj::error_code& ec) {
    text_ += part;
    const double number = Nearest(text_, rough);
    // A literal such as 1e999 parses to infinity, which no JSON text can mean.
    if (!std::isfinite(number))
      return Refuse("a number is out of range, expected at most 1.8e308", ec);
    return AddNumber(number);
  }
  bool on_bool(bool truth, bj::error_code&) { return Add(Value(truth)); }
  bool on_null(bj::error_code&) { return Add(Value(nullptr)); }
  bool on_comment_part(std::string_view, bj::error_code&) { return true; }
  bool on_comment(std::string_view, bj::error_code&) { return true; }

 private:
  struct Frame {
    Value value;
    std::string key;
  };

  bool Refuse(std::string complaint, bj::error_code& ec) {
    complaint_ = std::move(complaint);
    ec = bj::error::exception;
    return false;
  }
  template <class Number>
  bool AddNumber(Number number) {
    text_.clear();
    return Add(Value(number));
  }
  bool Begin(Value value) {
    stack_.push_back({std::move(value), {}});
    return true;
  }
  bool End() {
    Value value = std::move(stack_.back().value);
    stack_.pop_back();
    return Add(std::move(value));
  }
  bool Add(Value value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Frame& frame = stack_.back();
    if (Array* array = frame.value.if_array()) {
      array->push_back(std::move(value));
    } else {
      frame.value.get_object().insert_or_assign(frame.key, std::move(value));
    }
    return true;
  }

  const Limits& limits_;
  Value root_;
  std::vector<Frame> stack_;
  std::string text_;
  std::string complaint_;
};

/// Shortest text that reads back as the same double; with a point, so that it stays a double.
std::string DoubleText(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

/// `indent` < 0: compact.
void Write(const Value& value, int indent, std::string* out) {
  const auto newline = [&](int depth) {
    if (indent < 0) return;
    out->push_back('\n');
    out->append(static_cast<size_t>(depth) * 2, ' ');
  };
  const int inner = indent < 0 ? -1 : indent + 1;
  if (const Object* object = value.if_object(); object != nullptr && !object->empty()) {
    out->push_back('{');
    bool first = true;
    for (const auto& [key, member] : *object) {
      if (!std::exchange(first, false)) out->push_back(',');
      newline(inner);
      *out += bj::serialize(bj::string_view(key));
      *out += indent < 0 ? ":" : ": ";
      Write(member, inner, out);
    }
    newline(indent);
    out->push_back('}');
  } else if (const Array* array = value.if_array(); array != nullptr && !array->empty()) {
    out->push_back('[');
    bool first = true;
    for (const Value& element : *array) {
      if (!std::exchange(first, false)) out->push_back(',');
      newline(inner);
      Write(element, inner, out);
    }
    newline(indent);
    out->push_back(']');
  } else if (const double* number = value.if_double()) {
    *out += DoubleText(*number);
  } else {
    *out += bj::serialize(value);
  }
}

/// What the library's error code means here.
std::string Explain(const Handler& handler, bj::error_code ec, std::string_view text,
                    size_t offset) {
  if (ec == bj::error::exponent_overflow)
    return "a number's exponent is out of range, expected at most 308";
  if (ec == bj::error::expected_hex_digit) return "expected four hex digits after \\u";
  return DescribeSyntaxError(text, offset, handler.open());
}

Status WrongKind(std::string_view key, std::string_view expected, const Value& value) {
  return InvalidArgument(fmt::format("\"{}\" is {}, expected {}", key, KindName(value), expected));
}

template <class T>
Result<T> Needed(std::string_view key, bool present, Result<T> value) {
  if (!present) return Fail(InvalidArgument(fmt::format("\"{}\" is missing", key)));
  return value;
}

}  // namespace

Result<Value> Parse(std::string_view text, const Limits& limits, std::string_view where) {
  const auto fail = [&](Status status) {
    return Fail(std::move(status).WithContext(std::string(where)));
  };
  if (text.size() > limits.max_bytes)
    return fail(ResourceExhausted(fmt::format("JSON text has {} bytes, more than the limit of {}",
                                              text.size(), limits.max_bytes)));
  bj::parse_options options;
  options.max_depth = limits.max_depth;
  bj::basic_parser<Handler> parser(options, limits);
  bj::error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (ec) {
    if (ec == bj::error::too_deep)
      return fail(ResourceExhausted(
          fmt::format("offset {}: JSON nested deeper than {} levels", used, limits.max_depth)));
    const std::string& complaint = parser.handler().complaint();
    return fail(InvalidArgument(
        fmt::format("offset {}: invalid JSON: {}", used,
                    complaint.empty() ? Explain(parser.handler(), ec, text, used) : complaint)));
  }
  if (used < text.size())
    return fail(InvalidArgument(
        fmt::format("offset {}: invalid JSON: expected nothing after the value, got {}", used,
                    Quote(text.substr(used), kMaxExcerptBytes))));
  return parser.handler().TakeRoot();
}

std::string Serialize(const Value& value) {
  std::string text;
  Write(value, -1, &text);
  return text;
}

std::string SerializePretty(const Value& value) {
  std::string text;
  Write(value, 0, &text);
  text.push_back('\n');
  return text;
}

const Value* Find(const Object& object, std::string_view key) {
  const Value* value = object.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string_view KindName(const Value& value) {
  switch (value.kind()) {
    case bj::kind::null:
      return "null";
    case bj::kind::bool_:
      return "boolean";
    case bj::kind::int64:
    case bj::kind::uint64:
      return "integer";
    case bj::kind::double_:
      return "number";
    case bj::kind::string:
      return "string";
    case bj::kind::array:
      return "array";
    case bj::kind::object:
      return "object";
  }
  return "unknown";
}

Result<int64_t> GetInt(const Object& object, std::string_view key, int64_t fallback) {
  const Value* value = Find(object, key);
  if (value == nullptr) return fallback;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64())
    return Fail(InvalidArgument(fmt::format("\"{}\" is {}, too large", key, value->get_uint64())));
  // Writers in dynamic languages print whole numbers as 8192.0.
  if (const double* number = value->if_double();
      number != nullptr && std::trunc(*number) == *number && std::abs(*number) < 9e15)
    return static_cast<int64_t>(*number);
  return Fail(WrongKind(key, "an integer", *value));
}

Result<double> GetDouble(const Object& object, std::string_view key, double fallback) {
  const Value* value = Find(object, key);
  if (value == nullptr) return fallback;
  if (value->is_double()) return value->get_double();
  if (value->is_int64()) return static_cast<double>(value->get_int64());
  if (value->is_uint64()) return static_cast<double>(value->get_uint64());
  return Fail(WrongKind(key, "a number", *value));
}

Result<bool> GetBool(const Object& object, std::string_view key, bool fallback) {
  const Value* value = Find(object, key);
  if (value == nullptr) return fallback;
  if (const bool* truth = value->if_bool()) return *truth;
  return Fail(WrongKind(key, "true or false", *value));
}

Result<std::string> GetString(const Object& object, std::string_view key, std::string fallback) {
  const Value* value = Find(object, key);
  if (value == nullptr) return fallback;
  if (const bj::string* text = value->if_string()) return std::string(*text);
  return Fail(WrongKind(key, "a string", *value));
}

Result<int64_t> NeedInt(const Object& object, std::string_view key) {
  return Needed(key, Find(object, key) != nullptr, GetInt(object, key, 0));
}
Result<double> NeedDouble(const Object& object, std::string_view key) {
  return Needed(key, Find(object, key) != nullptr, GetDouble(object, key, 0));
}
Result<std::string> NeedString(const Object& object, std::string_view key) {
  return Needed(key, Find(object, key) != nullptr, GetString(object, key, ""));
}

}  // namespace tessera::json
