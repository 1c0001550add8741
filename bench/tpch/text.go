package tpch

import "sync"

const (
	poolBytes = 300 << 20
	poolSeed  = 933588178
	// longestSentence is a number of bytes that no sentence reaches.
	longestSentence = 256
)

// pool returns the random text from which all comments are cut. Generating the text takes some seconds, so it then
// stays in memory.
var pool = sync.OnceValue(func() string {
	w := writer{random: stream{seed: poolSeed}, text: make([]byte, 0, poolBytes+longestSentence)}
	for len(w.text) < poolBytes {
		w.sentence()
	}
	return string(w.text[:poolBytes])
})

// writer generates sentences.
type writer struct {
	random stream
	text   []byte
}

func (w *writer) word(of *words) { w.text = append(w.text, w.random.word(of)...) }

func (w *writer) space() { w.text = append(w.text, ' ') }

func (w *writer) sentence() {
	for _, part := range w.random.word(sentences) {
		switch part {
		case 'N':
			w.nounPhrase()
		case 'V':
			w.verbPhrase()
		case 'P':
			w.word(prepositions)
			w.text = append(w.text, " the "...)
			w.nounPhrase()
		case 'T':
			w.text = w.text[:len(w.text)-1]
			w.word(terminators)
			w.space()
		}
	}
}

func (w *writer) nounPhrase() {
	for _, part := range w.random.word(nounPhrases) {
		switch part {
		case 'N':
			w.word(nouns)
		case 'J':
			w.word(adjectives)
		case 'D':
			w.word(adverbs)
		case ';': // the comma between two adjectives replaces the space
			w.text[len(w.text)-1] = ','
		}
		w.space()
	}
}

func (w *writer) verbPhrase() {
	for _, part := range w.random.word(verbPhrases) {
		switch part {
		case 'V':
			w.word(verbs)
		case 'D':
			w.word(adverbs)
		case 'X':
			w.word(auxiliaries)
		}
		w.space()
	}
}
