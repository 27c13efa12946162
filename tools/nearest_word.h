/* nearest_word.h - the word that a mistyped one was meant to be. */
#ifndef TOOL_NEAREST_WORD_H
#define TOOL_NEAREST_WORD_H

/* The one of `count` candidates nearest to `word`, by insertions, deletions, replacements and swaps of neighbours,
 * ignoring case; NULL when none is near. */
const char *tool_suggest(const char *word, const char *const *candidates, int count);

#endif
