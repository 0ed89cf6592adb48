// SPDX-License-Identifier: Apache-2.0
#include "net/router.h"

#include <map>

#include "base/check.h"
#include "net/errors.h"

namespace tessera::net {
namespace {

std::vector<std::string_view> Split(std::string_view path) {
  std::vector<std::string_view> parts;
  if (path == "/") return parts;
  size_t start = 1;
  while (start <= path.size()) {
    const size_t end = std::min(path.find('/', start), path.size());
    parts.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

bool IsCapture(std::string_view part) {
  return part.starts_with('{') && part.ends_with('}');
}
bool IsTail(std::string_view part) {
  return part.ends_with("...}");
}
std::string CaptureName(std::string_view part) {
  return std::string(part.substr(1, part.size() - (IsTail(part) ? 5 : 2)));
}

struct Endpoint {
  Handler handler;
  std::vector<std::string> names;  // Of captures, in pattern order.
};

/// One position in the tree of patterns: at most one child per kind, tried in order of precedence.
struct Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::unique_ptr<Node> capture;
  std::unique_ptr<Node> tail;  // Takes all that is left; has endpoints only.
  std::map<std::string, Endpoint, std::less<>> endpoints;  // By method.
};

/// Depth-first in order of precedence; a dead end backs up. Cost is bounded by the number of
/// patterns, not by 2^segments, because each node has one capture child at most and patterns are
/// few and short.
const Node* Match(const Node& node, const std::vector<std::string>& segments, size_t index,
                  std::vector<std::string>* captured) {
  if (index == segments.size()) return node.endpoints.empty() ? nullptr : &node;
  if (const auto literal = node.literals.find(segments[index]); literal != node.literals.end())
    if (const Node* found = Match(*literal->second, segments, index + 1, captured)) return found;
  if (node.capture && !segments[index].empty()) {
    captured->push_back(segments[index]);
    if (const Node* found = Match(*node.capture, segments, index + 1, captured)) return found;
    captured->pop_back();
  }
  if (!node.tail) return nullptr;
  std::string rest = segments[index];
  for (size_t i = index + 1; i < segments.size(); ++i) rest.append("/").append(segments[i]);
  captured->push_back(std::move(rest));
  return node.tail.get();
}

std::string AllowList(const Node& node) {
  std::string allow;
  const auto add = [&](std::string_view method) {
    allow.append(allow.empty() ? "" : ", ").append(method);
  };
  for (const auto& [method, endpoint] : node.endpoints) {
    add(method);
    if (method == "GET" && !node.endpoints.contains("HEAD")) add("HEAD");
  }
  if (!node.endpoints.contains("OPTIONS")) add("OPTIONS");
  return allow;
}

const Endpoint* FindEndpoint(const Node& node, std::string_view method) {
  auto found = node.endpoints.find(method);
  if (found == node.endpoints.end() && method == "HEAD") found = node.endpoints.find("GET");
  return found == node.endpoints.end() ? nullptr : &found->second;
}

void AnswerNotFound(const Request&, const ResponseWriter& writer) {
  (void)writer.Send(DefaultErrorResponse({404, "not_found", "no such path"}));
}

void AnswerNotAllowed(const Request&, const ResponseWriter& writer, std::string_view allow) {
  Response response =
      DefaultErrorResponse({405, "method_not_allowed", "this path does not take that method"});
  response.headers.Set("Allow", allow);
  (void)writer.Send(std::move(response));
}

void AnswerOptions(const Request&, const ResponseWriter& writer, std::string_view allow) {
  (void)writer.Send({204, {{"Allow", std::string(allow)}}, ""});
}

}  // namespace

struct Router::Tables {
  Node root;
  std::vector<Route> routes;
  Handler not_found = AnswerNotFound;
  MethodHook not_allowed = AnswerNotAllowed;
  MethodHook options = AnswerOptions;

  void Handle(Request request, ResponseWriter writer) const;
};

Router::Router() : tables_(std::make_shared<Tables>()) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::Add(std::string_view method, std::string_view pattern, Handler handler) {
  TESSERA_CHECK(pattern.starts_with('/') && handler);
  Node* node = &tables_->root;
  Endpoint endpoint{std::move(handler), {}};
  const std::vector<std::string_view> parts = Split(pattern);
  for (size_t i = 0; i < parts.size(); ++i) {
    TESSERA_CHECK(!IsTail(parts[i]) || i + 1 == parts.size());
    if (IsCapture(parts[i])) endpoint.names.push_back(CaptureName(parts[i]));
    std::unique_ptr<Node>& child = !IsCapture(parts[i]) ? node->literals[std::string(parts[i])]
                                   : IsTail(parts[i])   ? node->tail
                                                        : node->capture;
    if (!child) child = std::make_unique<Node>();
    node = child.get();
  }
  TESSERA_CHECK(node->endpoints.emplace(method, std::move(endpoint)).second);
  tables_->routes.push_back({std::string(method), std::string(pattern)});
}

void Router::OnNotFound(Handler handler) {
  tables_->not_found = std::move(handler);
}
void Router::OnMethodNotAllowed(MethodHook hook) {
  tables_->not_allowed = std::move(hook);
}
void Router::OnOptions(MethodHook hook) {
  tables_->options = std::move(hook);
}
std::vector<Router::Route> Router::routes() const {
  return tables_->routes;
}

void Router::Tables::Handle(Request request, ResponseWriter writer) const {
  std::vector<std::string> captured;
  const Node* node = request.path == "*" ? nullptr : Match(root, request.segments, 0, &captured);
  if (!node) return not_found(std::move(request), std::move(writer));
  const Endpoint* endpoint = FindEndpoint(*node, request.method);
  if (!endpoint) {
    const std::string allow = AllowList(*node);
    const MethodHook& hook = request.method == "OPTIONS" ? options : not_allowed;
    return hook(std::move(request), std::move(writer), allow);
  }
  request.params.clear();
  for (size_t i = 0; i < endpoint->names.size(); ++i)
    request.params.emplace_back(endpoint->names[i], std::move(captured[i]));
  endpoint->handler(std::move(request), std::move(writer));
}

void Router::Handle(Request request, ResponseWriter writer) const {
  tables_->Handle(std::move(request), std::move(writer));
}

Handler Router::AsHandler() const {
  return [tables = std::shared_ptr<const Tables>(tables_)](Request request, ResponseWriter writer) {
    tables->Handle(std::move(request), std::move(writer));
  };
}

}  // namespace tessera::net
