// An inline function that is not inlined: what check_weak_symbols.sh must find.
namespace halftone::kernels {

template <typename T>
[[gnu::noinline]] T weak_symbol_sample(T x) {
  return x + 1;
}
template int weak_symbol_sample<int>(int);

}  // namespace halftone::kernels
