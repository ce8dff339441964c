"""A few sentences in many languages: what a text looks like that a model of another language was never taught.

They were written for this and stand for any other language too. French, Dutch, Hungarian and Chinese are left out on
purpose: benchmarks/confidence.py asks with those whether a language is noticed that no calibration has seen.
"""

FOREIGN = {
    "ar": "أين تقع أقرب محطة قطار؟|لم يصل أخي إلى البيت بعد.|سنسافر غدا إلى البحر مع الأطفال.|هذا الكتاب مفيد جدا.|"
    "يجب أن يكون الطلب مكتوبا وموقعا.|شكرا جزيلا",
    "cs": "Kde je tady nejbližší lékárna?|Moje sestra pracuje v malé knihovně za městem.|Včera celý den pršelo.|"
    "Žádost musí být podána nejpozději do konce měsíce.|Děkuji, nic nepotřebuji.|Starý pes spí u dveří.",
    "da": "Hvornår åbner butikken i morgen?|Min far har altid boet tæt på havet.|Jeg ved ikke, hvad hun mente med det.|"
    "Børnene leger ude i haven, selv om det regner.|Tak for hjælpen.|Ansøgningen skal sendes skriftligt.",
    "de": "Wo finde ich hier eine offene Apotheke?|Meine Schwester arbeitet seit gestern in einer kleinen Bibliothek.|"
    "Das habe ich nicht gewusst.|Der Antrag muss bis Ende des Monats schriftlich gestellt werden.|"
    "Vielen Dank für Ihre Hilfe.|Zwei Kinder spielen mit einem alten Hund vor der Tür.",
    "el": "Πού είναι ο πιο κοντινός σταθμός;|Δεν ξέρω τι εννοούσε.|Τα παιδιά παίζουν στον κήπο.|"
    "Η αίτηση πρέπει να υποβληθεί εγγράφως μέχρι το τέλος του μήνα.|Ευχαριστώ πολύ.|Ο γέρικος σκύλος κοιμάται.",
    "en": "Where can I find an open pharmacy around here?|My sister has been working in a small library since then.|"
    "I did not know that.|The request must be made in writing by the end of the month.|Thank you for your help.|"
    "Two children are playing with an old dog in front of the door.",
    "es": "¿Dónde está la farmacia más cercana?|Mi hermana trabaja en una biblioteca pequeña desde ayer.|No lo sabía.|"
    "La solicitud debe presentarse por escrito antes de fin de mes.|Muchas gracias por su ayuda.|"
    "Dos niños juegan con un perro viejo delante de la puerta.",
    "et": "Kus on siin lähim apteek?|Minu õde töötab väikeses raamatukogus.|Ma ei teadnud seda.|"
    "Taotlus tuleb esitada kirjalikult hiljemalt kuu lõpuks.|Suur aitäh abi eest.|Lapsed mängivad vana koeraga.",
    "fi": "Missä on lähin apteekki?|Sisareni on töissä pienessä kirjastossa kaupungin ulkopuolella.|En tiennyt sitä.|"
    "Hakemus on jätettävä kirjallisesti kuukauden loppuun mennessä.|Kiitos avusta.|Lapset leikkivät pihalla.",
    "he": "איפה בית המרקחת הקרוב?|אחותי עובדת בספרייה קטנה.|לא ידעתי את זה.|יש להגיש את הבקשה בכתב עד סוף החודש.|"
    "תודה רבה על העזרה.|הילדים משחקים עם כלב זקן.",
    "hi": "सबसे नज़दीकी स्टेशन कहाँ है?|मेरी बहन एक छोटे पुस्तकालय में काम करती है।|मुझे यह नहीं पता था।|"
    "आवेदन महीने के अंत तक लिखित रूप में देना होगा।|आपकी मदद के लिए धन्यवाद।|बच्चे बाहर खेल रहे हैं।",
    "id": "Di mana apotek yang terdekat dari sini?|Kakak saya bekerja di perpustakaan kecil sejak kemarin.|"
    "Saya tidak tahu itu.|Permohonan harus diajukan secara tertulis sebelum akhir bulan.|"
    "Terima kasih atas bantuannya.|Dua anak bermain dengan anjing tua di depan pintu.",
    "it": "Dove si trova la farmacia più vicina?|Mia sorella lavora in una piccola biblioteca da ieri.|Non lo sapevo.|"
    "La domanda deve essere presentata per iscritto entro la fine del mese.|Grazie mille per l'aiuto.|"
    "Due bambini giocano con un vecchio cane davanti alla porta.",
    "ja": "一番近い駅はどこですか。|妹は小さな図書館で働いています。|それは知りませんでした。|"
    "申請書は月末までに提出してください。|手伝ってくれてありがとう。|子供たちが庭で犬と遊んでいる。",
    "ko": "가장 가까운 역이 어디입니까?|제 여동생은 작은 도서관에서 일합니다.|그것을 몰랐습니다.|"
    "신청서는 월말까지 서면으로 제출해야 합니다.|도와주셔서 감사합니다.|아이들이 마당에서 놀고 있다.",
    "lt": "Kur čia artimiausia vaistinė?|Mano sesuo dirba mažoje bibliotekoje už miesto.|Aš to nežinojau.|"
    "Prašymas turi būti pateiktas raštu iki mėnesio pabaigos.|Labai ačiū už pagalbą.|Vaikai žaidžia kieme.",
    "pl": "Gdzie jest najbliższa apteka?|Moja siostra pracuje w małej bibliotece za miastem.|Nie wiedziałem o tym.|"
    "Wniosek należy złożyć na piśmie do końca miesiąca.|Dziękuję bardzo za pomoc.|Dzieci bawią się z psem.",
    "pt": "Onde fica a farmácia mais próxima?|A minha irmã trabalha numa pequena biblioteca desde ontem.|Não sabia.|"
    "O pedido deve ser apresentado por escrito até ao fim do mês.|Muito obrigado pela sua ajuda.|"
    "Duas crianças brincam com um cão velho.",
    "ro": "Unde este cea mai apropiată farmacie?|Sora mea lucrează într-o bibliotecă mică de ieri.|Nu am știut asta.|"
    "Cererea trebuie depusă în scris până la sfârșitul lunii.|Mulțumesc pentru ajutor.|Copiii se joacă afară.",
    "ru": "Где здесь ближайшая аптека?|Моя сестра работает в маленькой библиотеке за городом.|Я этого не знал.|"
    "Заявление следует подать в письменном виде до конца месяца.|Большое спасибо за помощь.|Дети играют с собакой.",
    "sv": "Var ligger närmaste apotek?|Min syster arbetar på ett litet bibliotek sedan i går.|Det visste jag inte.|"
    "Ansökan måste lämnas in skriftligen före månadens slut.|Tack så mycket för hjälpen.|"
    "Två barn leker med en gammal hund framför dörren.",
    "sw": "Duka la dawa la karibu liko wapi?|Dada yangu anafanya kazi katika maktaba ndogo.|Sikujua hilo.|"
    "Maombi lazima yawasilishwe kwa maandishi kabla ya mwisho wa mwezi.|Asante sana kwa msaada.|Watoto wanacheza nje.",
    "th": "ร้านขายยาที่ใกล้ที่สุดอยู่ที่ไหน|น้องสาวของฉันทำงานในห้องสมุดเล็ก ๆ|ฉันไม่รู้เรื่องนั้น|ขอบคุณมากสำหรับความช่วยเหลือ",
    "tr": "En yakın eczane nerede?|Kız kardeşim dünden beri küçük bir kütüphanede çalışıyor.|Bunu bilmiyordum.|"
    "Başvurunun ay sonuna kadar yazılı olarak yapılması gerekir.|Yardımınız için teşekkürler.|Çocuklar oynuyor.",
    "uk": "Де тут найближча аптека?|Моя сестра працює в маленькій бібліотеці за містом.|Я цього не знав.|"
    "Заяву слід подати в письмовій формі до кінця місяця.|Щиро дякую за допомогу.|Діти граються з собакою.",
    "vi": "Hiệu thuốc gần nhất ở đâu?|Chị tôi làm việc trong một thư viện nhỏ từ hôm qua.|Tôi không biết điều đó.|"
    "Đơn phải được nộp bằng văn bản trước cuối tháng.|Cảm ơn bạn rất nhiều.|Hai đứa trẻ chơi với con chó già.",
}


def foreign_lines(but: str) -> dict[str, list[str]]:
    """The sentences of each language but this one, whose code may have a region: en-GB is English."""
    own = but.lower().replace("_", "-").split("-")[0]
    return {code: lines.split("|") for code, lines in FOREIGN.items() if code != own}
