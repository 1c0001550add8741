package tpch

import (
	"slices"
	"strconv"
	"strings"
)

// words is a list of words from dbgen's file dists.dss. byWeight holds each word as many times as its weight says.
type words struct{ byWeight []string }

// list parses words separated by commas. A weight follows its word after a colon. A word without a weight gets the
// weight of the next word that has a weight.
func list(text string) *words {
	w := new(words)
	var same []string
	for _, word := range strings.Split(text, ",") {
		word, weight, last := strings.Cut(word, ":")
		if same = append(same, word); !last {
			continue
		}
		n, err := strconv.Atoi(weight)
		if err != nil {
			panic(err)
		}
		for _, s := range same {
			for range n {
				w.byWeight = append(w.byWeight, s)
			}
		}
		same = same[:0]
	}
	return w
}

var (
	segments   = list("AUTOMOBILE,BUILDING,FURNITURE,HOUSEHOLD,MACHINERY:1")
	priorities = list("1-URGENT,2-HIGH,3-MEDIUM,4-NOT SPECIFIED,5-LOW:1")

	// The grammar of sentences: N is a noun phrase, V a verb phrase, P a preposition with a noun phrase, T the mark at
	// the end.
	sentences = list("NVT,NVPT,NVNT:3,NPVNT,NPVPT:1")
	// The grammar of noun phrases: J is an adjective, D an adverb, N a noun, and ; a comma.
	nounPhrases = list("N:10,JN:20,J;JN:10,DJN:50")
	// The grammar of verb phrases: V is a verb, D an adverb, X an auxiliary verb.
	verbPhrases = list("V:30,XV:1,VD:40,XVD:1")

	nouns = list("packages,requests,accounts,deposits:40,foxes,ideas,theodolites,pinto beans,instructions:20,dependencies,excuses,platelets,asymptotes:10," +
		"courts,dolphins:5,multipliers,sauternes,warthogs,frets,dinos,attainments,somas,Tiresias,patterns,forges,braids,frays,warhorses,dugouts,notornis," +
		"epitaphs,pearls,tithes,waters,orbits,gifts,sheaves,depths,sentiments,decoys,realms,pains,grouches,escapades,hockey players:1")
	verbs = list("sleep,wake,are,cajole,haggle:20,nag,use,boost:10,affix,detect,integrate:5,maintain,nod,was,lose,sublate,solve,thrash,promise,engage,hinder," +
		"print,x-ray,breach,eat,grow,impress,mold,poach,serve,run,dazzle,snooze,doze,unwind,kindle,play,hang,believe,doubt:1")
	adjectives = list("special,pending,unusual,express:20,furious,sly,careful,blithe,quick,fluffy,slow,quiet,ruthless,thin,close,dogged,daring,brave,stealthy," +
		"permanent,enticing,idle,busy:1,regular:50,final,ironic:40,even:30,bold:20,silent:10")
	adverbs = list("sometimes,always,never:1,furiously,slyly,carefully:50,blithely:40,quickly:30,fluffily:20,slowly,quietly,ruthlessly,thinly,closely,doggedly," +
		"daringly,bravely,stealthily,permanently,enticingly,idly,busily,regularly,finally,ironically,evenly,boldly,silently:1")
	prepositions = list("about,above,according to,across,after:50,against,along:40,alongside of,among:30,around:20,at:10,atop,before,behind,beneath,beside," +
		"besides,between,beyond,by,despite,during,except,for,from,in place of,inside,instead of,into,near,of,on,outside,over,past,since,through,throughout," +
		"to,toward,under,until,up,upon,whithout,with,within:1")
	auxiliaries = list("do,may,might,shall,will,would,can,could,should,ought to,must,will have to,shall have to,could have to,should have to,must have to," +
		"need to,try to:1")
	terminators = &words{append(slices.Repeat([]string{"."}, 50), ";", ":", "?", "!", "--")}
)
