"""Function words of a few languages, which say nothing about what a text is about.

They are left out of the words that are counted if the texts are in one of these
languages, which the function words themselves tell: in running text they are every
third word. Texts of any other language keep all of their words but those that most
rows share.
"""

from collections.abc import Mapping

from shoal.io._settings import READING

WORDS = {
    "English": """
        a about above after again against all almost also although always am among an
        and another any anybody anyone anything are aren around as at away be became
        because been before being below between both but by came can cannot come could
        couldn did didn do does doesn doing don done down during each either else
        enough etc even ever every everyone everything far few for from further get
        gets getting give given go goes going gone got had hadn has hasn have haven
        having he hence her here hers herself him himself his how however if in indeed
        instead into is isn it its itself just know least less let like ll made make
        makes many may maybe me might mine more most much must my myself need neither
        never next no nobody none nor not nothing now of off often on once one ones
        only onto or other others our ours ourselves out over own per perhaps please
        put quite rather re really said same say says see seem seemed seems seen
        several shall she should shouldn since so some somebody someone something
        sometimes somewhat still such sure take than thanks that the their theirs them
        themselves then there therefore these they thing things think this those
        though through thus to together too toward towards two under until up upon us
        use used using ve very via want was wasn way we well went were weren what
        whatever when where whether which while who whole whom whose why will with
        within without won would wouldn yes yet you your yours yourself yourselves
    """,
    "German": """
        aber alle allem allen aller alles als also am an andere anderen auch auf aus
        bei beim bin bis bist da damit dann das dass dein dem den denn der des dich
        die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine
        einem einen einer eines er es etwas euch euer für gegen hab habe haben hat
        hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im
        in ins ist jede jedem jeden jeder jedes jetzt kann kein keine keinen können
        könnte machen man mehr mein meine mich mir mit muss müssen nach nicht nichts
        noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner seit sich
        sie sind so soll sollen sollte sondern sonst über um und uns unser unsere
        unter viel vom von vor war waren warum was weil welche wenn wer werde werden
        wie wieder will wir wird wo wollen worden würde wurde zu zum zur zwischen
    """,
    "French": """
        ai ainsi alors après as au aucun aucune aussi autre autres aux avait avant
        avec avez avoir avons bien c car ce ceci cela celle celui ces cet cette ceux
        chez comme comment d dans de depuis des deux donc dont du elle elles en encore
        entre est et étaient était été être eu eux fait faire fois il ils j je jusque
        l la le les leur leurs lui m ma mais me même mes moi moins mon n ne ni non nos
        notre nous on ont ou où par parce pas peu peut plus pour pourquoi qu quand que
        quel quelle quelques qui quoi s sa sans se sera ses si sommes son sont sous
        sur ta tandis te tes toi ton tous tout toute toutes très tu un une vers vos
        votre vous y
    """,
    "Spanish": """
        al algo algunas algunos ante antes aquí así aunque cada como con contra cual
        cuando de del desde donde dos durante e el él ella ellas ellos en entre era
        eran es esa esas ese eso esos esta está están estas este esto estos fue fueron
        ha había han hasta hay la las le les lo los más me mi mis mucho muchos muy
        nada ni no nos nosotros nuestra nuestro o os otra otras otro otros para pero
        poco por porque pues que qué quien se sea ser si sí sido sin sobre son su sus
        también tan tanto te tenía tiene tienen todo todos tu tus un una unas uno unos
        usted ya yo
    """,
    "Italian": """
        a ad agli ai al alla alle allo anche ancora avere aveva c che chi ci come con
        contro cosa così cui d da dagli dai dal dalla dalle degli dei del dell della
        delle dello di dopo dove due e è ed era erano essere fa fino fra gli ha hai
        hanno ho i il in io la le lei li lo loro lui ma me mentre mi mia mio molto ne
        negli nei nel nella nelle no noi non nostra nostro o ogni per perché più po
        poi prima quale quando quanto quella quelle quelli quello questa queste questi
        questo qui sarà se sei senza si sia sono sopra sotto sta stata stato su sua
        sue sui sul sulla suo suoi tra tu tua tuo tutti tutto un una uno vi voi
    """,
    "Portuguese": """
        a ao aos as até com como da das de dela dele deles depois do dos e é ela elas
        ele eles em entre era eram essa esse esta está estas este estes eu foi foram
        há isso isto já lhe mais mas me mesmo meu minha muito na não nas nem no nos
        nós nossa nosso num numa o os ou para pela pelas pelo pelos por porque qual
        quando que quem são se sem ser será seu seus sobre só sua suas também te tem
        têm ter teu tinha tu um uma você vocês
    """,
    "Dutch": """
        aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch
        doen door dus een eens en er ge geen geweest haar had heb hebben heeft hem het
        hier hij hoe hun iemand iets ik in is ja je kan kon kunnen maar me meer men
        met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over
        reeds te tegen toch toen tot u uit uw van veel voor want waren was wat we wel
        werd wezen wie wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder
        zou
    """,
}
STOP_WORDS = {name: frozenset(text.split()) for name, text in WORDS.items()}


def find_language(counts: Mapping[str, float]) -> str | None:
    """The language of texts, by how often each word occurs; None where none is clear.

    >>> from collections import Counter
    >>> text = "the cat and the dog are not in the house of the king " * 50
    >>> find_language(Counter(text.split()))
    'English'
    >>> find_language({"ENSG01": 3, "ENSG02": 5}) is None
    True
    """
    total = sum(counts.values())
    if total < READING.words_of_language:
        return None
    shares = {
        language: sum(counts.get(word, 0) for word in own) / total
        for language, own in STOP_WORDS.items()
    }
    best, second = sorted(shares.values(), reverse=True)[:2]
    if best < READING.function_words or best < READING.clearly_more * second:
        return None
    return max(shares, key=shares.__getitem__)


def stop_words(counts: Mapping[str, float]) -> frozenset[str]:
    """The function words of the language that words are of; none if it is not clear."""
    language = find_language(counts)
    return STOP_WORDS[language] if language else frozenset()
