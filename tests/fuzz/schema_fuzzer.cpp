// libFuzzer: any text is refused with an Error or prints to a text that parses to the same schema.
#include <tenon/schema/derive.h>
#include <tenon/schema/schema.h>

#include <tenon/support/error.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::schema;
  Schema schema;
  try {
    schema = parse(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const tenon::Error&) {
    return 0;
  }
  // An Error from here on is a fault of the printer or of a derivation, and ends the run.
  if (!(parse(schema.str()) == schema)) std::abort();
  if (has_inplace_form(schema)) {
    const Schema form = inplace_form(schema);
    if (!(parse(form.str()) == form)) std::abort();
  }
  return 0;
}
