package redteam

import "time"

// Attack is one way to hurt a ferryman, and what it may come to at most.
type Attack struct {
	Name, About string
	Secure      bool          // over TLS
	Alone       bool          // without a bystander; others may take place beside it
	Few         bool          // on event loops only
	Time        time.Duration // how long run may take; 0: attackTime
	Peak        float64       // MiB that ferryman may hold meanwhile; 0: peakOver more than before
	Ratio       float64       // of the bystander's p50 to its undisturbed one; 0: slowdown
	After       float64       // MiB that it may hold, beyond what it held before, cooling after the attackers have left; 0: afterOver
	moods       []mood        // of its upstream; nil: moods
	run         func(r *rig) error
}

// Bounds that hold where an attack names no other.
const (
	attackTime = 10 * time.Second
	peakOver   = 32.0 // MiB
	slowdown   = 20.0
	afterOver  = 20.0 // MiB
	cooling    = 10 * time.Second
	// ceiling ends an attack, whatever its bound: the machine is not ours alone.
	ceiling = 2048.0 // MiB
	// floor is the least that an undisturbed p50 counts for, so that a fast machine is not held to its luck.
	floor = 200 * time.Microsecond
	// schedulers is what a flood may make of the bystander's p50 on goroutines: as long as some can run, Go's scheduler
	// polls the network every 10 ms, for 128 events at most, in order. Those of thousands of dials come first.
	schedulers = time.Second
	// worst is how long the bystander may wait for any one answer.
	worst = 3 * time.Second
)

func (a Attack) limit() time.Duration {
	if a.Time == 0 {
		return attackTime
	}
	return a.Time
}

func (a Attack) peak(before float64) float64 {
	if a.Peak == 0 {
		return before + peakOver
	}
	return a.Peak
}

func (a Attack) after(before float64) float64 {
	if a.After == 0 {
		return before + afterOver
	}
	return before + a.After
}

func (a Attack) ratio() float64 {
	if a.Ratio == 0 {
		return slowdown
	}
	return a.Ratio
}

// Attacks are all of them, in the order of importance.
var Attacks = []Attack{
	attackReferences, attackReferencesTLS, attackMoreReferences, attackAnsweredReferences, attackReferenceTrailers, attackOversize,
	attackStalled, attackLate, attackGone, attackRapidReset, attackFloods,
	attackUnreadH2, attackUnreadH1, attackHeads, attackBegunHeads, attackHeadsHang, attackSmallHeadsHang, attackContinuation,
	attackBombs, attackStreams, attackUnheard,
	attackTrailers, attackSmallData, attackChunks, attackReaders, attackNoWindow,
	attackGarbage, attackIdleTLS, attackTrickles, attackLingering,
}

// Find returns the attack with a name; ok is false where there is none.
func Find(name string) (a Attack, ok bool) {
	for _, a := range Attacks {
		if a.Name == name {
			return a, true
		}
	}
	return Attack{}, false
}
