// A plugin of gcc: `#pragma ferry instantiate` instantiates the templates that the functions above
// it use. gcc itself does so at the end of a file, but not at the end of a precompiled header:
// every file that is compiled with the header repeats the work. (clang has
// -fpch-instantiate-templates for this.)
//
// The functions it calls are exported by gcc's C++ compiler. They are declared here, so that the
// build does not need gcc-12-plugin-dev. A gcc that lacks one of them ignores the pragma: the build
// takes longer, and nothing else changes. gcc 14 has them, but then stops with an internal error in
// each file that is compiled with the header: precompiled_header.bzl does without the plugin there.

struct cpp_reader;

[[gnu::weak]] extern int function_depth;
[[gnu::weak]] void c_register_pragma(const char* space, const char* name,
                                     void (*handler)(cpp_reader*));
[[gnu::weak]] void instantiate_pending_templates(int retries);

extern "C" {
enum insert_option { NO_INSERT, INSERT };
[[gnu::weak]] int get_named_event_id(const char* name, insert_option insert);
[[gnu::weak]] void register_callback(const char* plugin, int event, void (*callback)(void*, void*),
                                     void* user_data);
extern const int plugin_is_GPL_compatible;
const int plugin_is_GPL_compatible = 1;  // gcc looks for the name
}

namespace {

void Instantiate(cpp_reader*) {
  ++function_depth;  // no garbage collection: the parser is under way
  instantiate_pending_templates(0);
  --function_depth;
}

void RegisterPragma(void*, void*) { c_register_pragma("ferry", "instantiate", Instantiate); }

}  // namespace

// `arguments` begin with the plugin's name. Returns 0: gcc goes on.
extern "C" int plugin_init(const char** arguments, void*) {
  if (&function_depth != nullptr && get_named_event_id != nullptr && c_register_pragma != nullptr &&
      instantiate_pending_templates != nullptr && register_callback != nullptr) {
    register_callback(*arguments, get_named_event_id("PLUGIN_PRAGMAS", NO_INSERT), RegisterPragma,
                      nullptr);
  }
  return 0;
}
