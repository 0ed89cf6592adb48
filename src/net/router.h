// SPDX-License-Identifier: Apache-2.0
//
// Router: method and path pattern -> handler. Build it, then hand `router.AsHandler()` to the
// server; it is immutable and thread-safe from then on.
//
// Pattern: segments separated by '/'. `{name}` takes exactly one segment (never empty), `{name...}`
// as the last one takes one or more, joined by '/'. A literal wins over `{name}`, which wins over
// `{name...}`, segment by segment from the left. Paths are exact: "/a" and "/a/" differ.
//
// HEAD is served by the GET handler (the server drops the body). OPTIONS, an unknown path and a
// known path with another method go to hooks, so that a dialect shapes the body.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/response_writer.h"

namespace tessera::net {

class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  /// Requires a well-formed pattern that is not taken for this method (CHECK: routes are code).
  void Add(std::string_view method, std::string_view pattern, Handler handler);

  /// Default: 404 with the default error object.
  void OnNotFound(Handler handler);
  /// `allow` is "GET, HEAD, POST"; put it in the Allow header. Default: 405 with both.
  using MethodHook =
      std::function<void(Request request, ResponseWriter writer, std::string_view allow)>;
  void OnMethodNotAllowed(MethodHook hook);
  /// Answers OPTIONS on any known path (CORS). Default: 204 with Allow.
  void OnOptions(MethodHook hook);

  /// Finds the handler, sets request.params and calls it, or a hook.
  void Handle(Request request, ResponseWriter writer) const;
  /// A copy of the tables bound to Handle.
  Handler AsHandler() const;

  struct Route {
    std::string method;
    std::string pattern;
  };
  /// In order of registration: compared with the API description by a test.
  std::vector<Route> routes() const;

 private:
  struct Tables;
  std::shared_ptr<Tables> tables_;
};

}  // namespace tessera::net
