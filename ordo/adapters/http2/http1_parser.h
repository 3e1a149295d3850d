// Http1Parser: HTTP/1.1 requests out of bytes, strictly: what two readers could understand in two
// ways is refused, so that nothing can be smuggled past a proxy.
//
//   Http1Parser parser(limits, connection_bytes, budget);
//   if (parser.feed(bytes) == Http1Parser::State::complete) {      // takes what belongs to it
//     serve(parser.take_head(), parser.take_body());
//     parser.reset();                                              // the next one
//   }
//
// Refused: a line that does not end in CRLF, a folded line, a space before a colon, control
// characters, a second Content-Length, Content-Length with Transfer-Encoding, a Transfer-Encoding
// other than chunked or in HTTP/1.0, a chunk size that is not 1 to 8 hexadecimal digits, no Host or
// more than one in HTTP/1.1, a version other than 1.0 and 1.1.
//
// Threads: one owner.
// Bounds:  a head of header_bytes_max bytes, a body of message_bytes_max, see KeptBytes.
// Errors:  failed: the status and the words to answer with; then the connection has to be closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/adapters/http2/conversation.h"
#include "ordo/adapters/http2/kept_bytes.h"
#include "ordo/adapters/http2/limits.h"

namespace ordo::http2 {

class Http1Parser {
 public:
  enum class State { head, body, complete, failed };

  // `connection_bytes` is what the connection keeps. REQUIRES: all three outlive this.
  Http1Parser(const Limits& limits, std::size_t& connection_bytes, InputBudget& budget);

  // Takes what belongs to the request from `bytes`.
  State feed(std::string_view& bytes);
  State state() const { return state_; }
  // Nothing of a request has come.
  bool is_untouched() const { return state_ == State::head && raw_.empty(); }
  // The client waits for "100 Continue" before it sends the body. True once.
  bool take_wish_to_continue() { return std::exchange(wants_continue_, false); }

  RequestHead take_head() { return std::move(head_); }
  std::string take_body() { return body_.release(); }
  bool is_keep_alive() const { return is_keep_alive_; }
  bool is_old() const { return is_old_; }  // HTTP/1.0.

  unsigned error_status() const { return error_status_; }
  std::string_view error_words() const { return error_words_; }

  // REQUIRES: complete.
  void reset();

 private:
  enum class ChunkState { size, data, data_end, trailers };

  void feed_head(std::string_view& bytes);
  void feed_body(std::string_view& bytes);
  void feed_chunks(std::string_view& bytes);
  void take_chunk_data(std::string_view& bytes);
  bool take_line(std::string_view& bytes, std::size_t size_max);
  void parse_head();
  bool parse_request_line(std::string_view line);
  bool parse_target(std::string_view target);
  bool parse_field(std::string_view line);
  bool note_field(std::string_view name, std::string_view value);
  bool check_fields();
  void parse_chunk_size();
  void keep(std::string_view bytes);
  bool fail(unsigned status, std::string_view words);

  const Limits& limits_;
  State state_ = State::head;
  std::string raw_;  // The head, or one line of what stands between chunks.
  RequestHead head_;
  std::string authority_;  // Of a target that is a whole address.
  KeptBytes body_;
  std::uint64_t body_left_ = 0;
  ChunkState chunk_state_ = ChunkState::size;
  std::size_t trailer_bytes_ = 0;
  std::size_t host_count_ = 0;
  bool has_length_ = false;
  bool is_chunked_ = false;
  bool is_keep_alive_ = true;
  bool is_old_ = false;
  bool wants_continue_ = false;
  unsigned error_status_ = 0;
  std::string_view error_words_;
};

}  // namespace ordo::http2
